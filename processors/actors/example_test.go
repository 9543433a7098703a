package actors_test

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/schemas"
)

// Whoever is cared for weighs five times as much, who is avoided a fifth; and of a view features see whose pin it was and in
// which interests, and nothing of who viewed it. Edges weigh 1 at first, so the step that holds an affinity of 0 must, too.
func ExampleConfig() {
	cfg := actors.DefaultConfig()
	cfg.Steps = actors.Steps{{From: math.Inf(-1), Weight: 0.2}, {From: -2, Weight: 1}, {From: 10, Weight: 5}}
	cfg.Joins = actors.Joins{schemas.View: {Object: []string{"author", "interests"}, Actor: []string{}}}
	fmt.Println(cfg.Validate())

	cfg.Steps = actors.Steps{{From: math.Inf(-1), Weight: 0.5}, {From: 10, Weight: 5}}
	fmt.Println(cfg.Validate())
	// Output:
	// <nil>
	// steps: weight 0.5 at affinity 0, must be 1, which edges have at first
}
