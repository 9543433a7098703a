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

// balance decides which store is first and which extra reads are allowed. It counts reads and uses no clock.
type balance struct {
	mu      sync.Mutex
	cfg     Config
	first   side
	tokens  float64    // saved extra reads
	credit  [2]float64 // late reads that may still be sent to each store on credit
	follows float64    // remaining reads that may follow a swap, beyond budget and credit
	missed  [2]int     // consecutive calls of each store without an answer in time
	lost    float64    // reads lost by the first store, less Config.BudgetRatio for each read it won
	warm    float64    // reads due to be sent to the second store
	good    int        // consecutive successful warm reads of the primary while it is second
}

func newBalance(cfg Config) *balance {
	full := float64(cfg.BudgetBurst)
	return &balance{cfg: cfg, tokens: full, credit: [2]float64{full, full}, follows: followers * full}
}

// followers times Config.BudgetBurst is how many waiting reads may follow a swap: some hundreds are in flight when a
// store hangs. Each answer in time earns Config.BudgetRatio of one. Two overloaded stores swap repeatedly, and earn
// next to nothing.
const followers = 10

// begin counts a read. It returns which store is first, and whether this read also warms the second.
func (b *balance) begin() (first side, warm bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+b.cfg.BudgetRatio, float64(b.cfg.BudgetBurst))
	b.warm += b.cfg.WarmRatio
	if warm = b.warm >= 1; warm {
		b.warm--
	}
	return b.first, warm
}

// spend takes an extra read from the budget, borrow from a store's credit, and follow from the allowance for reads after a
// swap. They report whether one was available.
func (b *balance) spend() bool         { return b.take(&b.tokens) }
func (b *balance) borrow(of side) bool { return b.take(&b.credit[of]) }
func (b *balance) follow() bool        { return b.take(&b.follows) }

func (b *balance) take(from *float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if *from < 1 {
		return false
	}
	*from--
	return true
}

// returnCredit returns the credit of a call that was canceled early.
func (b *balance) returnCredit(to side) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.credit[to] = min(b.credit[to]+1, float64(b.cfg.BudgetBurst))
}

// inTime counts an answer in time. borrowed is set if the call was on credit.
func (b *balance) inTime(of side, borrowed bool) {
	back := b.cfg.BudgetRatio
	if borrowed {
		back++
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed[of] = 0
	b.follows = min(b.follows+b.cfg.BudgetRatio, followers*float64(b.cfg.BudgetBurst))
	b.credit[of] = min(b.credit[of]+back, float64(b.cfg.BudgetBurst))
}

// late counts a call that was not answered in time. A call on credit has already paid for it.
func (b *balance) late(of side, borrowed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed[of]++
	if !borrowed {
		b.credit[of] = max(b.credit[of]-1, 0)
	}
}

// miss counts a call that a read with a hole in its answer no longer waits for.
func (b *balance) miss(of side) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed[of]++
}

// silent is how many consecutive calls a store must miss before it counts as unresponsive. Warm reads detect that it
// responds again.
const silent = 3

// answers reports whether a store currently responds.
func (b *balance) answers(of side) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.missed[of] < silent
}

// win counts a read that the first store won. Reads without a winner count for neither store: they must not keep a store
// that hangs first.
func (b *balance) win(first side) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == first {
		b.lost = max(b.lost-b.cfg.BudgetRatio, 0)
	}
}

// lose counts a read that the other store won although first was queried earlier. It reports whether the stores swapped.
func (b *balance) lose(first side) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first != first { // it is already second
		return false
	}
	b.lost++
	if b.lost < float64(b.cfg.FailoverLosses) {
		return false
	}
	b.change()
	return true
}

// probe counts a warm read. It reports whether the primary became first again.
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
	if b.good < b.cfg.FailbackReads {
		return false
	}
	b.change()
	return true
}

// change swaps the stores. mu is held.
func (b *balance) change() {
	b.first = b.first.other()
	b.lost, b.good = 0, 0
}

func (b *balance) isFirst(s side) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first == s
}
