package hedged

import (
	"sync"
)

// side is one of the two stores.
type side int

const (
	primary side = iota
	standby
)

func (s side) other() side { return 1 - s }

func (s side) String() string {
	if s == primary {
		return "primary"
	}
	return "standby"
}

// balance decides which store is first, and what extra reads there may be. It counts reads and knows no clock.
type balance struct {
	mu      sync.Mutex
	cfg     Config
	first   side
	tokens  float64    // extra reads saved
	credit  [2]float64 // late reads that each store may still be asked for beyond them
	follows float64    // late reads that may follow a change of places beyond both
	missed  [2]int     // calls of each store in a row that were not answered in time
	lost    float64    // by the first store, less what those that it has won pay for
	warm    float64    // reads to be sent to the second store
	good    int        // of the primary in a row, while it is second
}

func newBalance(cfg Config) *balance {
	full := float64(cfg.Burst)
	return &balance{cfg: cfg, tokens: full, credit: [2]float64{full, full}, follows: followers * full}
}

// followers is how many times Config.Burst of reads that wait may follow a change of places: some hundreds are under way when a
// store hangs. Each answer in time earns Config.Budget of one. Two stores that have too much to do change places again and
// again, and earn next to nothing.
const followers = 10

// begin counts a read, and says which store is first and whether this read warms the second.
func (b *balance) begin() (first side, warm bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+b.cfg.Budget, float64(b.cfg.Burst))
	b.warm += b.cfg.Warm
	if warm = b.warm >= 1; warm {
		b.warm--
	}
	return b.first, warm
}

// spend takes an extra read from what is saved.
func (b *balance) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// borrow takes an extra read from a store's credit.
func (b *balance) borrow(of side) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.credit[of] < 1 {
		return false
	}
	b.credit[of]--
	return true
}

// follow takes a read of those that may follow a change of places.
func (b *balance) follow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.follows < 1 {
		return false
	}
	b.follows--
	return true
}

// giveBack returns what a call has borrowed that was not waited for.
func (b *balance) giveBack(to side) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.credit[to] = min(b.credit[to]+1, float64(b.cfg.Burst))
}

// inTime counts an answer that came in time; borrowed: to a read on credit.
func (b *balance) inTime(of side, borrowed bool) {
	back := b.cfg.Budget
	if borrowed {
		back++
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed[of] = 0
	b.follows = min(b.follows+b.cfg.Budget, followers*float64(b.cfg.Burst))
	b.credit[of] = min(b.credit[of]+back, float64(b.cfg.Burst))
}

// late counts a call that was not answered in time. One on credit has cost it already.
func (b *balance) late(of side, borrowed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed[of]++
	if !borrowed {
		b.credit[of] = max(b.credit[of]-1, 0)
	}
}

// miss counts a call that a read with an answer, which had a hole, has given up.
func (b *balance) miss(of side) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed[of]++
}

// silent is how many calls in a row a store must have missed to be taken for one that does not answer. The reads that warm it
// tell that it does again.
const silent = 3

// answers says whether a store is one that answers at present.
func (b *balance) answers(of side) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.missed[of] < silent
}

// win counts a read that the first store has won. Reads that nobody won count for neither: a store that hangs must not
// keep its place by them.
func (b *balance) win(first side) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == first {
		b.lost = max(b.lost-b.cfg.Budget, 0)
	}
}

// lose counts a read that the other store won although first was asked earlier; changed: it is not first any more.
func (b *balance) lose(first side) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first != first { // it is second already
		return false
	}
	b.lost++
	if b.lost < float64(b.cfg.Losses) {
		return false
	}
	b.change()
	return true
}

// probe counts a read of the second store that nobody waited for; changed: the primary is first again.
func (b *balance) probe(of side, ok bool) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if of != primary || b.first == primary {
		return false
	}
	if !ok {
		b.good = 0
		return false
	}
	b.good++
	if b.good < b.cfg.Recover {
		return false
	}
	b.change()
	return true
}

// change has the stores change places. mu is held.
func (b *balance) change() {
	b.first = b.first.other()
	b.lost, b.good = 0, 0
}

func (b *balance) isFirst(s side) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first == s
}
