package ops

import (
	"bytes"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestReadDeletedUsers_ReadsWhatWriteDeletedUsersWrites(t *testing.T) {
	var out bytes.Buffer
	must.OK(t, WriteDeletedUsers(&out, []schemas.DeletedUser{{User: "user:b", Time: 2}, {User: "user:a", Time: 1}}))
	got := must.Get(ReadDeletedUsers(strings.NewReader("# comment\n\n" + out.String() + "user:a\n  user:c  \n")))(t)
	expect.NoDiff(t, got, []schemas.UserID{"user:a", "user:b", "user:c"}, "users")
}
