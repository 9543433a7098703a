package rows

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// storeRunner returns a runner that opens stores and needs no broker.
func storeRunner(t *testing.T, keeps time.Duration) *Runner {
	t.Helper()
	r := newPartition(t, Group{Name: "g", Inputs: []Input{{topic: "in"}}}).run.r
	r.cfg.Dir, r.fs, r.maxOffline = t.TempDir(), vfs.Default, keeps
	var err error
	r.shared, err = NewShared(r.cfg)
	must.OK(t, err)
	t.Cleanup(r.shared.Close)
	return r
}

// openAnew opens the store of partition 0, whose changelog ends at 10.
func (r *Runner) openAnew(t *testing.T) *store {
	t.Helper()
	s, err := r.openStore(identity{Topic: "g-table"}, 10)
	must.OK(t, err)
	return s
}

// leave writes a store with one row that was complete at a time.
func (r *Runner) leave(t *testing.T, complete time.Time) {
	t.Helper()
	s := r.openAnew(t)
	must.OK(t, s.Set("user:1\x00n", []byte("row")))
	must.OK(t, s.SetOffset(5))
	must.OK(t, s.Close())
	setLocal(t, filepath.Join(r.cfg.Dir, "g-table", "0"), offsetKind, offsetAt(5, complete))
}

func TestStore_OfflineTooLongIsRemoved(t *testing.T) {
	t.Parallel()
	const week = 7 * 24 * time.Hour
	for _, c := range []struct {
		name    string
		keeps   time.Duration
		away    time.Duration
		removed bool
	}{
		{"a moment", maxStoreOffline, 0, false},
		{"nearly as long as may be", maxStoreOffline, maxStoreOffline - time.Minute, false},
		{"as long as deletions are kept", maxStoreOffline, week, true},
		{"until a time to come", maxStoreOffline, -week, true},
		{"a week, and nothing is forgotten", 0, week, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := storeRunner(t, c.keeps)
			r.leave(t, time.Now().Add(-c.away))
			s := r.openAnew(t)
			_, closer, err := s.db.Get([]byte("user:1\x00n"))
			if got := errors.Is(err, pebble.ErrNotFound); got != c.removed || s.offset.Load() != map[bool]int64{true: offsetNone, false: 5}[c.removed] {
				t.Errorf("removed %v at offset %d, want %v", got, s.offset.Load(), c.removed)
			}
			if closer != nil {
				must.OK(t, closer.Close())
			}
			must.OK(t, s.Close())
		})
	}
}

// A store is complete only when it is known to be, not after any write.
func TestStore_RemembersWhenItWasComplete(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(t *testing.T, s *store)
		now  bool
	}{
		{"nothing came", func(*testing.T, *store) {}, false},
		{"rows came, not all of them", func(t *testing.T, s *store) { must.OK(t, s.SetOffset(7)) }, false},
		{"all rows came", func(t *testing.T, s *store) { must.OK(t, errors.Join(s.SetOffset(9), s.MarkRecovered())) }, true},
		{"recovery is cut short", func(t *testing.T, s *store) { must.OK(t, errors.Join(s.SetOffset(7), s.MarkRecovered())) }, false},
		{"it follows, and is behind", func(t *testing.T, s *store) {
			s.latestEnd = func() int64 { return 10 }
			must.OK(t, s.SetOffset(8))
		}, false},
		{"it follows to the end", func(t *testing.T, s *store) {
			s.latestEnd = func() int64 { return 9 }
			must.OK(t, s.SetOffset(8))
		}, true},
		{"it is written", func(t *testing.T, s *store) { must.OK(t, s.apply(newBatch(1), 8)) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := storeRunner(t, maxStoreOffline)
			before := time.Now().Add(-maxStoreOffline / 2)
			r.leave(t, before)
			began := time.Now().Truncate(time.Microsecond)
			s := r.openAnew(t)
			c.do(t, s)
			must.OK(t, s.Set("user:1\x00n", []byte("row"))) // there must be something to write
			must.OK(t, s.Close())
			s = r.openAnew(t)
			if got := !s.completeAt.Before(began); got != c.now || !got && s.completeAt.UnixMicro() != before.UnixMicro() {
				t.Errorf("complete at %s, opened at %s, before at %s", s.completeAt, began, before)
			}
			must.OK(t, s.Close())
		})
	}
}
