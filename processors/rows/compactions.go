package rows

import (
	"cmp"
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// compactions bounds how many compactions run at the same time in all stores of a process. Stores that fill alike are
// compacted alike, and each compaction takes a processor for as long as it lasts, a second at times: with as many of them
// as processors everything else waits. When one has ended, the store that needs it most is next.
//
// Locks are taken in this order: granting, a store's own, mu.
type compactions struct {
	most     int
	granting sync.Mutex // held while stores are called: one that has left is called no more

	mu      sync.Mutex
	running int
	stores  map[*compacting]struct{}
}

// newCompactions lets half of the processors compact, one at least.
func newCompactions() *compactions {
	return &compactions{most: max(1, runtime.GOMAXPROCS(0)/2), stores: map[*compacting]struct{}{}}
}

// compacting is a store's part of it: what Pebble asks for a compaction, and tells of its end.
type compacting struct {
	all     *compactions
	db      pebble.DBForCompaction
	running int // all.mu is held
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

// Unregister implements pebble.CompactionScheduler: the store is not called from here on.
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
	if !c.take() {
		return false, nil
	}
	return true, c
}

// take takes a place, if there is one for this store.
func (c *compacting) take() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	_, here := c.all.stores[c]
	if !here || c.all.running >= c.all.most || c.running >= c.db.GetAllowedWithoutPermission() {
		return false
	}
	c.running++
	c.all.running++
	return true
}

func (c *compacting) giveBack() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.running--
	c.all.running--
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler. A store may run one compaction at any time, so
// one that waits for more has its turn when that one ends.
func (*compacting) UpdateGetAllowedWithoutPermission() {}

// Started implements pebble.CompactionGrantHandle.
func (*compacting) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (*compacting) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (*compacting) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle. No lock is held.
func (c *compacting) Done() {
	c.giveBack()
	c.all.grant()
}

// grant gives the places that are free to the stores that wait.
func (a *compactions) grant() {
	a.granting.Lock()
	defer a.granting.Unlock()
	for c := a.neediest(); c != nil; c = a.neediest() {
		if c.take() && !c.db.Schedule(c) {
			c.giveBack() // and it does not wait any more
		}
	}
}

// neediest returns the store whose compaction matters most, nil if none waits or there is no place. granting is held.
func (a *compactions) neediest() (neediest *compacting) {
	var most pebble.WaitingCompaction
	for _, c := range a.free() {
		waits, w := c.db.GetWaitingCompaction()
		if waits && (neediest == nil || compareNeed(w, most) > 0) {
			neediest, most = c, w
		}
	}
	return neediest
}

// free returns the stores that could be given a place.
func (a *compactions) free() (list []*compacting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running >= a.most {
		return nil
	}
	for c := range a.stores {
		if c.running < c.db.GetAllowedWithoutPermission() {
			list = append(list, c)
		}
	}
	return list
}

// compareNeed compares as Pebble says: what is optional comes last, then the priority decides, then the score.
func compareNeed(a, b pebble.WaitingCompaction) int {
	if a.Optional != b.Optional {
		if a.Optional {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Score, b.Score))
}
