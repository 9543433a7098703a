package ops

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestReadDeletedUsers_ReadsWhatWriteDeletedUsersWrites(t *testing.T) {
	var out bytes.Buffer
	must.OK(t, WriteDeletedUsers(&out, []schemas.DeletedUser{{User: "user:b", Time: 2}, {User: "user:a", Time: 1}}))
	got, err := ReadDeletedUsers(strings.NewReader("# comment\n\n" + out.String() + "user:a\n  user:c  \n"))
	if want := []schemas.UserID{"user:a", "user:b", "user:c"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
