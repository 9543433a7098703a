package rows

import (
	"cmp"
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// compactions limits how many compactions run at the same time in all stores of a process. Stores that fill at the same rate
// are compacted at the same time, and each compaction occupies a CPU, sometimes for a second. If they occupied all CPUs,
// everything else would wait. When a compaction ends, the store with the most urgent one is next.
//
// Lock order: granting, a store's own lock, mu.
type compactions struct {
	limit    int
	granting sync.Mutex // held while stores are called, so that no unregistered store is called

	mu      sync.Mutex
	running int
	stores  map[*compacting]struct{}
}

// newCompactions returns a limit of half of the CPUs, at least one.
func newCompactions() *compactions {
	return &compactions{limit: max(1, runtime.GOMAXPROCS(0)/2), stores: map[*compacting]struct{}{}}
}

// compacting is the compaction scheduler of one store. Pebble requests compactions from it and reports their end to it.
type compacting struct {
	all     *compactions
	db      pebble.DBForCompaction
	running int // guarded by all.mu
}

var (
	_ pebble.CompactionScheduler   = (*compacting)(nil)
	_ pebble.CompactionGrantHandle = (*compacting)(nil)
)

// Register implements pebble.CompactionScheduler.
func (c *compacting) Register(_ int, db pebble.DBForCompaction) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.db = db
	c.all.stores[c] = struct{}{}
}

// Unregister implements pebble.CompactionScheduler. After it returns, the store is not called any more.
func (c *compacting) Unregister() {
	c.all.granting.Lock()
	defer c.all.granting.Unlock()
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	delete(c.all.stores, c)
}

// TrySchedule implements pebble.CompactionScheduler. The store's lock is held. A store that is refused waits until grant
// calls it.
func (c *compacting) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !c.reserve() {
		return false, nil
	}
	return true, c
}

// reserve reserves a slot for this store. It returns false if none is free.
func (c *compacting) reserve() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	_, registered := c.all.stores[c]
	if !registered || c.all.running >= c.all.limit || c.running >= c.db.GetAllowedWithoutPermission() {
		return false
	}
	c.running++
	c.all.running++
	return true
}

func (c *compacting) release() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.running--
	c.all.running--
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler. It does nothing: a store may always run one
// compaction, and when that one ends, a store that waits for another is considered.
func (*compacting) UpdateGetAllowedWithoutPermission() {}

// Started implements pebble.CompactionGrantHandle.
func (*compacting) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (*compacting) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (*compacting) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle. No lock is held.
func (c *compacting) Done() {
	c.release()
	c.all.grant()
}

// grant assigns the free slots to waiting stores.
func (a *compactions) grant() {
	a.granting.Lock()
	defer a.granting.Unlock()
	for c := a.mostUrgent(); c != nil; c = a.mostUrgent() {
		if c.reserve() && !c.db.Schedule(c) {
			c.release() // and it no longer waits
		}
	}
}

// mostUrgent returns the store with the most urgent compaction. It returns nil if no store waits or no slot is free. granting
// is held.
func (a *compactions) mostUrgent() (mostUrgent *compacting) {
	var highest pebble.WaitingCompaction
	for _, c := range a.free() {
		waits, w := c.db.GetWaitingCompaction()
		if waits && (mostUrgent == nil || compareUrgency(w, highest) > 0) {
			mostUrgent, highest = c, w
		}
	}
	return mostUrgent
}

// free returns the stores that are below their own limit, or nil if no slot is free.
func (a *compactions) free() (list []*compacting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running >= a.limit {
		return nil
	}
	for c := range a.stores {
		if c.running < c.db.GetAllowedWithoutPermission() {
			list = append(list, c)
		}
	}
	return list
}

// compareUrgency orders compactions as Pebble documents: optional ones last, then by priority, then by score.
func compareUrgency(a, b pebble.WaitingCompaction) int {
	if a.Optional != b.Optional {
		if a.Optional {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Score, b.Score))
}
