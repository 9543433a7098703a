package materialize

import (
	"sync"
	"time"
)

// hand is what a Sink has taken from the log and not yet made durable, as far as its age goes. How far a store is behind
// is asked while a write hangs, so it is not told by writes that end.
type hand struct {
	mu     sync.Mutex
	oldest time.Time // of the records in hand; zero: there are none
	failed bool      // they could not be made durable, and have not come again yet
	tried  time.Time // when they failed, or the run began that they may come again to
}

// comesAgain is how long after its begin a run has got the records again that one before it failed with, if they are still
// this process's: longer than a rebalance, the pause between two runs, and what it takes to notice that brokers hang.
const comesAgain = 2 * time.Minute

// begin is called when a run begins.
func (h *hand) begin(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = now
}

// take is called with when the oldest of the records arrived that are now worked on.
func (h *hand) take(oldest time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.oldest, h.failed = oldest, false
}

// end is called when their effect is durable, or this process has nothing to do with them any more.
func (h *hand) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.oldest, h.failed = time.Time{}, false
}

// fail is called when they could not be made durable: they are as old as before, and older soon, until they come again.
func (h *hand) fail(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.tried = true, now
}

// age is that of the oldest record in hand, 0 with none. Records that failed and have not come again are another process's
// by now.
func (h *hand) age(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.oldest.IsZero() || h.failed && now.Sub(h.tried) > comesAgain {
		return 0
	}
	return max(0, now.Sub(h.oldest))
}
