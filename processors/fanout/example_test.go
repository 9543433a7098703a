package fanout_test

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/fanout"
)

// A product with small followees and slow news: a pin counts for a week instead of a day, and from five thousand followers on
// it is pulled by who reads. What is out of bounds is told all at once.
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
