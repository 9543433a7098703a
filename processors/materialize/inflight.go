package materialize

import (
	"sync"
	"time"
)

// inFlight tracks the age of the records that a Sink has read and not yet written durably. The lag metric uses it,
// because it must be correct while a write hangs.
type inFlight struct {
	mu     sync.Mutex
	oldest time.Time // arrival of the oldest record in flight; zero: none
	failed bool      // the write failed, and the records have not been read again
	tried  time.Time // when the write failed, or when the run that may read them again started
}

// rereadTimeout is the longest time in which a new run reads the failed records of the previous run again, if this process
// still owns them. It exceeds a rebalance, the pause between two runs, and the time to detect that brokers hang.
const rereadTimeout = 2 * time.Minute

// begin is called when a run starts.
func (h *inFlight) begin(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = now
}

// take is called with the arrival time of the oldest record when records are read.
func (h *inFlight) take(oldest time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.oldest, h.failed = oldest, false
}

// end is called when the effect of the records is durable, or when this process no longer owns their partitions.
func (h *inFlight) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.oldest, h.failed = time.Time{}, false
}

// fail is called when the write failed. The age of the records keeps growing until they are read again.
func (h *inFlight) fail(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.tried = true, now
}

// age returns the age of the oldest record in flight, or 0 if there is none. It assumes that another process owns failed
// records that were not read again within comesAgain.
func (h *inFlight) age(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.oldest.IsZero() || h.failed && now.Sub(h.tried) > rereadTimeout {
		return 0
	}
	return max(0, now.Sub(h.oldest))
}
