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
	cfg.HalfLife, cfg.PullAbove = 7*24*time.Hour, 5000
	fmt.Println(cfg.Validate())

	cfg.StepEdges, cfg.Recents = 10_000, 0
	fmt.Println(cfg.Validate())
	// Output:
	// <nil>
	// step_edges: 10000: want 1 to 3000
	// recents: 0: want 1 to 10000
}
