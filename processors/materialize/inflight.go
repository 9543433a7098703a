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

// runStarted is called when a run starts.
func (h *inFlight) runStarted(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = now
}

// recordsRead is called when records are read, with the arrival time of the oldest one.
func (h *inFlight) recordsRead(oldest time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.oldest, h.failed = oldest, false
}

// released is called when the effect of the records is durable, or when this process no longer owns their partitions.
func (h *inFlight) released() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.oldest, h.failed = time.Time{}, false
}

// writeFailed is called when the write failed. The age of the records grows until they are read again.
func (h *inFlight) writeFailed(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.tried = true, now
}

// age returns the age of the oldest record in flight, or 0 if there is none. If failed records were not read again within
// rereadTimeout, it assumes that another process owns them.
func (h *inFlight) age(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.oldest.IsZero() || h.failed && now.Sub(h.tried) > rereadTimeout {
		return 0
	}
	return max(0, now.Sub(h.oldest))
}
