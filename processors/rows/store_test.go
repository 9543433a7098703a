package rows

import (
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// storesEqualLog opens every local store in the directories and compares each row with the changelog up to the store's
// offset. The stores must not be in use. It returns the number of stores.
func (w *wire) storesEqualLog(t testing.TB, dirs ...string) int {
	t.Helper()
	byPartition := map[int32][]*kgo.Record{}
	for _, rec := range w.Records("t-table") {
		byPartition[rec.Partition] = append(byPartition[rec.Partition], rec)
	}
	stores := 0
	for _, dir := range dirs {
		for _, path := range must.Get(filepath.Glob(filepath.Join(dir, "t-table", "*")))(t) {
			partition := must.Get(strconv.Atoi(filepath.Base(path)))(t)
			storeEqualsLog(t, path, byPartition[int32(partition)])
			stores++
		}
	}
	return stores
}

func storeEqualsLog(t testing.TB, path string, log []*kgo.Record) {
	t.Helper()
	db := must.Get(pebble.Open(path, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: stored.Logger(silent(), "store")}))(t)
	defer db.Close()
	got, offset := map[string]string{}, offsetNone
	it := must.Get(db.NewIter(nil))(t)
	for it.First(); it.Valid(); it.Next() {
		if key := string(it.Key()); !isLocal(key) {
			got[key] = string(it.Value())
		} else if key[1] == offsetKind {
			offset = int64(binary.BigEndian.Uint64(it.Value()))
		}
	}
	must.OK(t, errors.Join(it.Error(), it.Close()))
	want := map[string]string{}
	for _, rec := range log {
		switch key := string(rec.Key); {
		case rec.Offset > offset || isLocal(key):
		case rec.Value == nil:
			delete(want, key)
		default:
			want[key] = string(rec.Value)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("store %s at offset %d has %d rows that differ from the changelog's %d", path, offset, len(got), len(want))
	}
}

func TestStore_DamagedIsRebuilt(t *testing.T) {
	t.Parallel()
	const users, rounds = 400, 2
	table := func(dir, partition string) string { return filepath.Join(dir, "t-table", partition) }
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		intact bool // need not be rebuilt
	}{
		{"untouched", func(*testing.T, string) {}, true},
		{"bits flipped in tables", func(t *testing.T, dir string) { flip(t, dir, "*.sst") }, false},
		{"bits flipped in manifests", func(t *testing.T, dir string) { flip(t, dir, "MANIFEST-*") }, false},
		{"tables truncated", func(t *testing.T, dir string) { truncate(t, dir, "*.sst") }, false},
		{"manifests truncated", func(t *testing.T, dir string) { truncate(t, dir, "MANIFEST-*") }, true}, // an older state, from which recovery continues
		{"table missing", func(t *testing.T, dir string) { remove(t, dir, "*.sst") }, false},
		{"another partition's", func(t *testing.T, dir string) {
			must.OK(t, os.Rename(table(dir, "0"), table(dir, "x")))
			must.OK(t, os.Rename(table(dir, "1"), table(dir, "0")))
			must.OK(t, os.Rename(table(dir, "x"), table(dir, "1")))
		}, false},
		{"without an identity", func(t *testing.T, dir string) { setLocal(t, table(dir, "0"), markerKind, nil) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, dir := newWire(t), t.TempDir()
			w.countFirst(t, dir, users)
			c.damage(t, dir)
			var removed atomic.Int64
			r := newRunner(t, w, dir, w.counter("t-in"))
			r.log = watched(t, "local store removed", &removed)
			w.send(t, "t-in", users, users, func(i int) string { return user(i - users) })
			runUntilDone(t, w, r, users*rounds)
			w.emittedOnce(t, users*rounds)
			expect.Equal(t, w.storesEqualLog(t, dir), testPartitions, "stores")
			expect.Equal(t, removed.Load() == 0, c.intact, "no store is removed, of %d", removed.Load())
		})
	}
}

func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	paths := must.Get(filepath.Glob(filepath.Join(dir, "t-table", "*", pattern)))(t)
	must.AtLeast(t, len(paths), 1, "files %s to damage", pattern)
	return paths
}

// flip inverts one byte in 64.
func flip(t *testing.T, dir, pattern string) {
	for _, path := range files(t, dir, pattern) {
		data := must.Get(os.ReadFile(path))(t)
		for i := 20; i < len(data); i += 64 {
			data[i] ^= 0xff
		}
		must.OK(t, os.WriteFile(path, data, 0o644))
	}
}

func truncate(t *testing.T, dir, pattern string) {
	for _, path := range files(t, dir, pattern) {
		info := must.Get(os.Stat(path))(t)
		must.OK(t, os.Truncate(path, info.Size()/2))
	}
}

func remove(t *testing.T, dir, pattern string) {
	for _, path := range files(t, dir, pattern) {
		must.OK(t, os.Remove(path))
	}
}

// offsetAt returns the value of the offset row of a store that was complete at a time.
func offsetAt(offset uint64, complete time.Time) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, offset), uint64(complete.UnixMicro()))
}

// setLocal overwrites a local row of a store. nil deletes it.
func setLocal(t *testing.T, path string, kind byte, value []byte) {
	t.Helper()
	db, err := pebble.Open(path, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: stored.Logger(silent(), "store")})
	must.OK(t, err)
	if value == nil {
		err = db.Delete(reservedKey(kind), pebble.Sync)
	} else {
		err = db.Set(reservedKey(kind), value, pebble.Sync)
	}
	must.OK(t, errors.Join(err, db.Close()))
}

// A locked store is in use, and not damaged.
func TestStore_InUseIsAnErrorAndKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		lock func(t *testing.T, path string)
	}{
		{"by this process", func(t *testing.T, path string) {
			lock := must.Get(pebble.LockDirectory(path, vfs.Default))(t)
			t.Cleanup(func() { must.OK(t, lock.Close()) })
		}},
		{"by another process", func(t *testing.T, path string) {
			expect.Equal(t, child.Start(t, "locker", path).Line(), "locked", "output of the other process")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, dir := newWire(t), t.TempDir()
			w.countFirst(t, dir, 40)
			path := filepath.Join(dir, "t-table", "2")
			c.lock(t, path)
			before := tables(t, path)
			r := newRunner(t, w, dir, w.counter("t-in"))
			var removed atomic.Int64
			r.log = watched(t, "local store removed", &removed)
			_ = runFails(t, r, "lock store "+path)
			if after := tables(t, path); removed.Load() != 0 || len(after) == 0 || !slices.Equal(after, before) {
				t.Errorf("%d stores removed; files %v, before %v", removed.Load(), after, before)
			}
		})
	}
}

// tables returns the sstable files of one store.
func tables(t *testing.T, path string) []string {
	t.Helper()
	return must.Get(filepath.Glob(filepath.Join(path, "*.sst")))(t)
}

func TestRun_UnwritableDirectory(t *testing.T) {
	t.Parallel()
	w, dir := newWire(t), t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "t-table"), nil, 0o644)) // a file instead of a directory
	_ = runFails(t, newRunner(t, w, dir, w.counter("t-in")), dir)
}

// A disk refuses writes while a group runs, because it is read-only, or full in spite of the limit.
func TestDisk_RefusedWritesStopTheGroup(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{syscall.EROFS, syscall.ENOSPC, syscall.EIO} {
		t.Run(refusal.Error(), func(t *testing.T) {
			t.Parallel()
			w, dir := newWire(t), t.TempDir()
			r := newRunner(t, w, dir, w.counter("t-in"))
			var refuses atomic.Bool
			var hits atomic.Int64
			r.fs = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if !refuses.Load() || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
					return nil
				}
				hits.Add(1)
				return &os.PathError{Op: "write", Path: op.Path, Err: refusal}
			}))
			stop := start(t, r)
			w.send(t, "t-in", 0, 10, user)
			eventually.True(t, "the first are applied", func() bool { return r.Status().Counters.Records == 10 })
			refuses.Store(true)
			for i := range r.slots {
				must.Get(r.slots[i].partition.db.AsyncFlush())(t)
			}
			eventually.True(t, "writes are refused", func() bool { return hits.Load() > 0 && r.slots[0].store.writeError.Load() != nil })
			before := len(w.Records("t-out"))
			w.send(t, "t-in", 10, 10, func(i int) string { return ownerIn(0) })
			eventually.True(t, "it has stopped", func() bool { return !r.Status().Joined })
			err := stop()
			must.As[*DiskError](t, err)
			expect.Is(t, err, refusal, "Run")
			expect.Error(t, err, dir, "Run")
			expect.Is(t, r.Run(t.Context()), refusal, "Run on the same disk")
			expect.Equal(t, len(w.Records("t-out")), before, "records emitted when the disk refuses")
			refuses.Store(false)
			runUntilDone(t, w, r, 20)
			w.emittedOnce(t, 20)
			w.storesEqualLog(t, dir)
		})
	}
}

// A disk refuses the last write of opening a store. Repeated attempts must not leave resources open.
func TestStore_FailedOpenReleasesResources(t *testing.T) {
	t.Parallel()
	r := newPartition(t, Group{Name: "g", Inputs: []Input{{topic: "in"}}}).run.r
	var hits atomic.Int64
	r.cfg.Dir = t.TempDir()
	r.fs = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || !strings.Contains(op.Path, "temporary.") { // it is renamed to the options file
			return nil
		}
		hits.Add(1)
		return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
	}))
	r.shared = must.Get(NewShared(r.cfg))(t)
	defer r.shared.Close()
	if _, err := r.openStore(identity{Topic: "g-table"}, 0); !errors.Is(err, syscall.ENOSPC) || hits.Load() == 0 {
		t.Fatalf("openStore: %v, %d writes refused; want %v", err, hits.Load(), syscall.ENOSPC)
	}
	expect.Equal(t, len(r.shared.compactions.stores), 0, "stores registered for compaction")
}

func TestDisk_FullStopsCommits(t *testing.T) {
	w := parallelWire(t)
	r := newRunner(t, w, t.TempDir(), w.counter("t-in"))
	var free atomic.Int64
	free.Store(1 << 40)
	r.freeBytes = func(string) (int64, error) { return free.Load(), nil }
	stop := start(t, r)
	w.send(t, "t-in", 0, 10, user)
	eventually.True(t, "the first are applied", func() bool { return r.Status().Counters.Records == 10 })
	free.Store(1)
	w.send(t, "t-in", 10, 10, func(i int) string { return user(i) })
	eventually.True(t, "it has stopped", func() bool { return !r.Status().Joined })
	expect.Is(t, stop(), ErrLowDisk, "Run")
	expect.Equal(t, len(w.Records("t-out")), 10, "records emitted: a full disk commits nothing")
	expect.Is(t, r.Run(t.Context()), ErrLowDisk, "Run on the full disk")
	free.Store(1 << 40)
	runUntilDone(t, w, r, 20)
	w.emittedOnce(t, 20)
}

// Goka uses a store for a short time although the session ended before it requested the store.
func TestStore_OfAnEndedSession(t *testing.T) {
	t.Parallel()
	s := &store{closed: true}
	for name, err := range map[string]error{
		"Set": s.Set("k", nil), "Delete": s.Delete("k"), "SetOffset": s.SetOffset(1), "MarkRecovered": s.MarkRecovered(),
	} {
		expect.Is(t, err, errClosed, "%s", name)
	}
	must.OK(t, s.Close())
}

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
