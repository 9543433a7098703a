package stored

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestOpen_ChecksFormat(t *testing.T) {
	dir, older, quiet := t.TempDir(), t.TempDir(), Logger(slog.New(slog.DiscardHandler), "")
	db, err := pebble.Open(older, &pebble.Options{Logger: quiet}) // a store without a format version
	if err == nil {
		err = db.Set([]byte("a"), nil, pebble.Sync)
	}
	must.OK(t, err)
	must.OK(t, db.Close())
	for _, test := range []struct {
		name, dir string
		version   byte
		want      string
	}{
		{"new", dir, 2, ""},
		{"same version", dir, 2, ""},
		{"other version", dir, 3, "format version [2], want [3]: delete the directory"},
		{"no version", older, 2, "format version [], want [2]: delete the directory"},
	} {
		db, err := Open(test.dir, Format{test.version, "delete the directory"}, &pebble.Options{Logger: quiet})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.dir)):
			t.Errorf("%s: got %v, want %q and the directory", test.name, err, test.want)
		}
		if err == nil {
			must.OK(t, db.Close())
		}
	}
}
