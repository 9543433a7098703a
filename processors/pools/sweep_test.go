package pools

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// A sweep happens one to two days after the deletion. The deletions of one day, by the user's clock, share a timer. An
// erasure removes all timers that are set.
func TestSweepAt_OneToTwoDaysLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		user := schemas.UserID("user:" + rapid.StringMatching(`[a-z0-9]{1,8}`).Draw(t, "user"))
		now := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "now"))
		at := sweepAt(user, now)
		if wait := at.Sub(now); wait <= sweepAfter || wait > 2*sweepAfter {
			t.Errorf("a sweep after %s, want from %s to twice that", wait, sweepAfter)
		}
		later := now.Add(time.Duration(rapid.Int64Range(0, int64(sweepAfter)-1).Draw(t, "later")))
		if again := sweepAt(user, later); !again.Equal(at) && !again.Equal(at.Add(sweepAfter)) {
			t.Errorf("sweeps at %s and %s, want the same time of day", at, again)
		}
		for stands := range 3 { // set up to two days before, and not fired
			if set := sweepAt(user, now.Add(-time.Duration(stands)*sweepAfter)); set.After(now) && !set.Equal(at) && !set.Equal(at.Add(-sweepAfter)) {
				t.Errorf("dropSweeps did not remove the timer at %s", set)
			}
		}
	})
}
