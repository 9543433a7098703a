package rows

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// All stores that are filled at the same time are compacted, and never more of them at once than the limit.
func TestCompactions_AreBoundedForTheProcess(t *testing.T) {
	t.Parallel()
	const stores, rows = 6, 60_000
	for _, most := range []int{1, 2} {
		t.Run(fmt.Sprint(most, " at once"), func(t *testing.T) {
			t.Parallel()
			all := newCompactions()
			all.limit = most
			var running, peak, done atomic.Int64
			var filling sync.WaitGroup
			for n := range stores {
				compacted := atomic.Int64{}
				opts := &pebble.Options{
					FS: vfs.NewMem(), MemTableSize: 64 << 10, DisableWAL: true, L0CompactionThreshold: 2, Logger: stored.Logger(silent(), "store"),
					CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
					EventListener: &pebble.EventListener{
						CompactionBegin: func(pebble.CompactionInfo) {
							now := running.Add(1)
							for before := peak.Load(); now > before && !peak.CompareAndSwap(before, now); before = peak.Load() {
							}
						},
						CompactionEnd: func(pebble.CompactionInfo) { running.Add(-1); compacted.Add(1); done.Add(1) },
					},
				}
				opts.Experimental.CompactionScheduler = &compacting{all: all}
				db := must.Get(pebble.Open(fmt.Sprint(n), opts))(t)
				filling.Go(func() {
					random := rand.New(rand.NewPCG(1, uint64(n)))
					for i := range uint64(rows) {
						key := binary.BigEndian.AppendUint64(nil, random.Uint64())
						if err := db.Set(key, binary.BigEndian.AppendUint64(nil, i), pebble.NoSync); err != nil {
							t.Error(err)
							return
						}
					}
					expect.Error(t, db.Close(), "", "Close")
					expect.AtLeast(t, compacted.Load(), 1, "compactions of store %d", n)
				})
			}
			filling.Wait()
			expect.Equal(t, peak.Load(), int64(most), "compactions at once, of %d", done.Load())
			expect.Equal(t, [2]int{len(all.stores), all.running}, [2]int{}, "remaining stores and compactions")
		})
	}
}

// fakeCompacting is a store that waits for a compaction.
type fakeCompacting struct {
	name    string
	need    pebble.WaitingCompaction
	refuses bool
	waits   bool
	granted *[]string
}

func (f *fakeCompacting) GetAllowedWithoutPermission() int { return 1 }

func (f *fakeCompacting) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	return f.waits, f.need
}

func (f *fakeCompacting) Schedule(pebble.CompactionGrantHandle) bool {
	f.waits = false
	if !f.refuses {
		*f.granted = append(*f.granted, f.name)
	}
	return !f.refuses
}

func TestCompactions_MostUrgentStoreIsFirst(t *testing.T) {
	var granted []string
	all := newCompactions()
	all.limit = 1
	handles := map[string]*compacting{}
	add := func(name string, refuses bool, need pebble.WaitingCompaction) {
		c := &compacting{all: all}
		c.Register(1, &fakeCompacting{name: name, need: need, refuses: refuses, waits: true, granted: &granted})
		handles[name] = c
	}
	busy := &compacting{all: all}
	busy.Register(1, &fakeCompacting{})
	ok, _ := busy.TrySchedule()
	expect.True(t, ok, "a free slot is granted")
	add("optional", false, pebble.WaitingCompaction{Optional: true, Priority: 100, Score: 9})
	add("low", false, pebble.WaitingCompaction{Priority: 70, Score: 9})
	add("high, 1", false, pebble.WaitingCompaction{Priority: 80, Score: 1})
	add("high, 2", false, pebble.WaitingCompaction{Priority: 80, Score: 2})
	add("no longer waiting", true, pebble.WaitingCompaction{Priority: 90})
	add("left", false, pebble.WaitingCompaction{Priority: 100})
	handles["left"].Unregister()
	ok, _ = handles["low"].TrySchedule()
	expect.False(t, ok, "a second slot is granted")
	want := []string{"high, 2", "high, 1", "low", "optional"}
	busy.Done()
	for i := 0; i < len(granted) && i < len(want); i++ {
		handles[granted[i]].Done()
	}
	expect.NoDiff(t, granted, want, "slots granted to")
	expect.Equal(t, all.running, 0, "slots in use")
}
