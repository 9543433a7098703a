package stored

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestRow(t *testing.T) {
	db := must.Get(pebble.Open("", &pebble.Options{FS: vfs.NewMem()}))(t)
	for key, value := range map[string]string{"a": "1", "empty": ""} {
		must.OK(t, db.Set([]byte(key), []byte(value), pebble.NoSync))
	}
	before := db.NewSnapshot()
	must.OK(t, db.Set([]byte("a"), []byte("2"), pebble.NoSync))
	tests := map[string]struct {
		from  pebble.Reader
		key   string
		there bool
		want  string
	}{
		"a row": {db, "a", true, "2"}, "in a snapshot": {before, "a", true, "1"}, "an empty row": {db, "empty", true, ""}, "none": {db, "b", false, ""},
	}
	for name, tt := range tests {
		if got, err := Row(tt.from, []byte(tt.key)); err != nil || (got != nil) != tt.there || string(got) != tt.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, tt.want)
		}
	}
	must.OK(t, before.Close())
	must.OK(t, db.Close())
}
