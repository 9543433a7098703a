package fanout_test

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/fanout"
)

// A configuration for a product with small followees whose pins stay relevant for long: the time constant is a week instead of
// a day, and a followee is pulled above 5000 followers. Validate reports all values that are out of bounds.
func ExampleConfig() {
	cfg := fanout.DefaultConfig()
	cfg.ScoreHalfLife, cfg.PullThreshold = 7*24*time.Hour, 5000
	fmt.Println(cfg.Validate())

	cfg.StepFollowers, cfg.MaxRecentPublications = 10_000, 0
	fmt.Println(cfg.Validate())
	// Output:
	// <nil>
	// step_followers: 10000: want 1 to 3000
	// max_recent_publications: 0: want 1 to 10000
}
