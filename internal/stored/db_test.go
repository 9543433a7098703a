package stored

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

var errClosed = errors.New("the store is closed")

func TestDB_CloseWaitsForUse(t *testing.T) {
	pdb := must.Get(pebble.Open("", &pebble.Options{FS: vfs.NewMem()}))(t)
	db := Guard(pdb, errClosed)
	in, leave, used, closed := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		used <- db.Use(func(pdb *pebble.DB) error {
			close(in)
			<-leave
			return pdb.Set([]byte("a"), nil, pebble.NoSync) // panics on a closed database
		})
	}()
	<-in
	go func() { closed <- db.Close() }()
	for waits := false; !waits; {
		if len(closed) > 0 {
			t.Fatalf("closed while it is used: %v", <-closed)
		}
		if waits = !db.mu.TryRLock(); !waits {
			db.mu.RUnlock()
		}
	}
	close(leave)
	must.OK(t, errors.Join(<-used, <-closed))
	expect.Is(t, db.Use(func(*pebble.DB) error { return nil }), errClosed, "use of a closed database")
	expect.Error(t, db.Close(), "", "close again")
}

func TestLogger_WritesOnlyErrors(t *testing.T) {
	var out bytes.Buffer
	l := Logger(slog.New(slog.NewTextHandler(&out, nil)), "a store")
	l.Infof("chatter %d", 1)
	l.Errorf("broken %d", 2)
	if got := out.String(); !strings.Contains(got, `level=ERROR msg="a store: broken 2"`) || strings.Contains(got, "chatter") {
		t.Errorf("logged %s, want only the error", got)
	}
}
