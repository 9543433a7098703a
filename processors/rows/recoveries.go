package rows

import (
	"fmt"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/topics"
)

// recoveries shows the progress of all recoveries of the process in one progress bar, if they take longer than barAfter.
type recoveries struct {
	start func(what string, total int) topics.Progress // nil: progress is logged
	now   func() time.Time

	mu        sync.Mutex
	open      map[*store]int64 // remaining changelog records by store
	startedAt time.Time        // when the first of the open stores was added
	bar       topics.Progress  // nil: not shown yet
	total     int64            // size of the bar
	reported  int64            // progress of the bar
}

// barAfter is how long recoveries take before the bar is shown.
const barAfter = time.Second

// ShowProgress sets a function that starts a progress bar. The bar replaces log messages for recoveries that take more than a
// second. Call Show before the first Run.
func (s *Shared) ShowProgress(start func(what string, total int) topics.Progress) {
	s.recoveries.start = start
}

// enabled reports whether a bar shows the progress, so that it need not be logged.
func (r *recoveries) enabled() bool { return r.start != nil }

// remaining sets the number of records that a store still has to read: before the first record, then repeatedly, and 0 at the end.
func (r *recoveries) remaining(s *store, records int64) {
	if !r.enabled() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.open) == 0 {
		r.startedAt = r.now()
	}
	r.open[s] = records
	if records <= 0 {
		delete(r.open, s)
	}
	r.update()
}

// update updates the bar. mu is held.
func (r *recoveries) update() {
	rest := int64(0)
	for _, records := range r.open {
		rest += records
	}
	if r.bar == nil && len(r.open) > 0 && r.now().Sub(r.startedAt) >= barAfter {
		r.bar, r.total, r.reported = r.start(fmt.Sprintf("recovering %d partitions", len(r.open)), int(rest)), rest, 0
	}
	if r.bar == nil {
		return
	}
	if done := r.total - rest; done > r.reported { // lower, if partitions were added
		r.bar.Add(int(done - r.reported))
		r.reported = done
	}
	if len(r.open) == 0 {
		r.bar.Done()
		r.bar = nil
	}
}
