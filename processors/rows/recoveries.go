package rows

import (
	"fmt"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/topics"
)

// recoveries shows a person how far the recoveries of the process are, all of them in one bar, if they take long.
type recoveries struct {
	start func(what string, total int) topics.Progress // nil: the log tells
	now   func() time.Time

	mu    sync.Mutex
	open  map[*store]int64 // changelog records still to be read
	began time.Time        // when the first of open was opened
	bar   topics.Progress  // nil: not long yet
	total int64            // of the bar
	told  int64            // to the bar
}

// barAfter is how long recoveries may take without a bar.
const barAfter = time.Second

// Show sets start, whose progress shows recoveries that take more than a second, in place of lines of the log. Call it before
// the first Run.
func (s *Shared) Show(start func(what string, total int) topics.Progress) { s.recoveries.start = start }

// shown says whether progress is shown, and the log need not tell.
func (r *recoveries) shown() bool { return r.start != nil }

// left says how many records a store has still to read: before the first, from time to time, and 0 at the end.
func (r *recoveries) left(s *store, records int64) {
	if !r.shown() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.open) == 0 {
		r.began = r.now()
	}
	r.open[s] = records
	if records <= 0 {
		delete(r.open, s)
	}
	r.tell()
}

// tell moves the bar. mu is held.
func (r *recoveries) tell() {
	rest := int64(0)
	for _, records := range r.open {
		rest += records
	}
	if r.bar == nil && len(r.open) > 0 && r.now().Sub(r.began) >= barAfter {
		r.bar, r.total, r.told = r.start(fmt.Sprintf("recovering %d partitions", len(r.open)), int(rest)), rest, 0
	}
	if r.bar == nil {
		return
	}
	if done := r.total - rest; done > r.told { // less: partitions have come since
		r.bar.Add(int(done - r.told))
		r.told = done
	}
	if len(r.open) == 0 {
		r.bar.Done()
		r.bar = nil
	}
}
