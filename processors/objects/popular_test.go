package objects

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

// The engagement of different actors is the decayed sum of the weights, in any order. Repeated actions of few actors change
// nothing.
func TestEngagement_EqualsDecayedSumOfDifferentActors(t *testing.T) {
	const halfLife = time.Hour
	rapid.Check(t, func(t *rapid.T) {
		var e engagement
		want := map[schemas.UserID]schemas.Micros{}
		newest := schemas.Micros(math.MinInt64)
		for range rapid.IntRange(1, 50).Draw(t, "actions") {
			actor := schemas.UserID(fmt.Sprintf("user:%d", rapid.IntRange(1, recentActors).Draw(t, "actor")))
			at := schemas.MicrosOf(time.Unix(0, 0).Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "minute")) * time.Minute))
			_, repeated := want[actor]
			if counts := e.add("pin:1", actor, 3, at, halfLife); counts == repeated {
				t.Fatalf("%s counts: %t, want %t", actor, counts, !repeated)
			}
			if !repeated {
				want[actor], newest = at, max(newest, at)
			}
		}
		sum := 0.0
		for _, at := range want {
			sum += 3 * math.Exp2(-(newest - at).Time().Sub(schemas.Micros(0).Time()).Hours())
		}
		if math.Abs(e.sum.Value-sum) > 1e-9*sum || e.sum.Time != newest || len(e.actors) != len(want) {
			t.Fatalf("got %+v, want %v at %v", e, sum, newest)
		}
	})
}

// The order of two engagements does not depend on the time at which they are compared, nor on their own times.
func TestDecayed_ScoreComparesAtAnyTime(t *testing.T) {
	const halfLife = time.Hour
	hour := schemas.MicrosOf(time.Unix(3600, 0))
	weak, strong := decay.Amount{Value: 7}, decay.Amount{Value: 4, Time: hour} // 3.5 and 4 an hour later
	expect.True(t, score(weak, halfLife) < score(strong, halfLife), "7 an hour earlier has a lower score than 4")
	expect.Near(t, score(decay.Amount{Value: 8}, halfLife), score(strong, halfLife), 1e-9, "score of 8 an hour earlier")
}
