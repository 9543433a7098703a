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
func storeRunner(t *testing.T, maxOffline time.Duration) *Runner {
	t.Helper()
	r := newPartition(t, Group{Name: "g", Inputs: []Input{{topic: "in"}}}).run.r
	r.cfg.Dir, r.fs, r.maxOffline = t.TempDir(), vfs.Default, maxOffline
	r.shared = must.Get(NewShared(r.cfg))(t)
	t.Cleanup(r.shared.Close)
	return r
}

// openEmpty opens the store of partition 0, whose changelog ends at 10.
func (r *Runner) openEmpty(t *testing.T) *store {
	t.Helper()
	return must.Get(r.openStore(identity{Topic: "g-table"}, 10))(t)
}

// writeStore writes a store with one row that was complete at a time.
func (r *Runner) writeStore(t *testing.T, complete time.Time) {
	t.Helper()
	s := r.openEmpty(t)
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
		{"shorter than the limit", maxStoreOffline, maxStoreOffline - time.Minute, false},
		{"as long as the tombstones' retention", maxStoreOffline, week, true},
		{"in the future", maxStoreOffline, -week, true},
		{"a week, without compaction", 0, week, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := storeRunner(t, c.keeps)
			r.writeStore(t, time.Now().Add(-c.away))
			s := r.openEmpty(t)
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

// A store counts as complete only after it contained the whole changelog, not after any write.
func TestStore_StoresTimeOfCompleteness(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(t *testing.T, s *store)
		now  bool
	}{
		{"nothing came", func(*testing.T, *store) {}, false},
		{"some rows read", func(t *testing.T, s *store) { must.OK(t, s.SetOffset(7)) }, false},
		{"all rows read", func(t *testing.T, s *store) { must.OK(t, errors.Join(s.SetOffset(9), s.MarkRecovered())) }, true},
		{"recovery interrupted", func(t *testing.T, s *store) { must.OK(t, errors.Join(s.SetOffset(7), s.MarkRecovered())) }, false},
		{"standby that lags", func(t *testing.T, s *store) {
			s.latestEnd = func() int64 { return 10 }
			must.OK(t, s.SetOffset(8))
		}, false},
		{"standby without lag", func(t *testing.T, s *store) {
			s.latestEnd = func() int64 { return 9 }
			must.OK(t, s.SetOffset(8))
		}, true},
		{"batch applied", func(t *testing.T, s *store) { must.OK(t, s.apply(newBatch(1), 8)) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := storeRunner(t, maxStoreOffline)
			before := time.Now().Add(-maxStoreOffline / 2)
			r.writeStore(t, before)
			began := time.Now().Truncate(time.Microsecond)
			s := r.openEmpty(t)
			c.do(t, s)
			must.OK(t, s.Set("user:1\x00n", []byte("row"))) // there must be something to write
			must.OK(t, s.Close())
			s = r.openEmpty(t)
			if got := !s.completeAt.Before(began); got != c.now || !got && s.completeAt.UnixMicro() != before.UnixMicro() {
				t.Errorf("complete at %s, opened at %s, before at %s", s.completeAt, began, before)
			}
			must.OK(t, s.Close())
		})
	}
}
