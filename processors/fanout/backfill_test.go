package fanout

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// In any sequence of follows, the first backfills are immediate, no interval has more than maxBackfills of them, and each
// deferral ends with its timer.
func TestSpend_BoundsBackfillsPerInterval(t *testing.T) {
	const interval = time.Minute
	rapid.Check(t, func(t *rapid.T) {
		var budget backfillBudget
		var immediate []schemas.Micros
		now := schemas.Micros(1)
		for follow := range rapid.IntRange(1, 200).Draw(t, "follows") {
			now += schemas.Micros(rapid.IntRange(0, 20_000_000).Draw(t, "pause"))
			if budget.timing && now >= budget.end(interval) {
				budget = backfillBudget{} // the timer fires
			}
			is, ok := budget.spend(now, interval)
			if follow < maxBackfills && !ok {
				t.Fatalf("follow %d is deferred", follow)
			}
			if ok == is.timing {
				t.Fatalf("spend at %d: immediate %v, a timer %v", now, ok, is.timing)
			}
			if budget = is; ok {
				immediate = append(immediate, now)
			}
		}
		for i, at := range immediate {
			// Two intervals may be adjacent, so the bound on any period is that of two.
			if n := i - 2*maxBackfills; n >= 0 && at-immediate[n] < schemas.Micros(interval.Microseconds()) {
				t.Fatalf("%d immediate backfills within %s", 2*maxBackfills+1, interval)
			}
		}
	})
}
