package actors_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/schemas"
)

// For views, features have only the pin's author and interests, and no attributes of the viewer. The strongest affinities
// must be stored.
func ExampleConfig() {
	cfg := actors.DefaultConfig()
	cfg.JoinedAttributes = actors.Joins{schemas.View: {Object: []string{"author", "interests"}, Actor: []string{}}}
	fmt.Println(cfg.Validate())

	cfg.TopAffinities, cfg.MaxAffinities = 50, 49
	fmt.Println(cfg.Validate())
	// Output:
	// <nil>
	// max_affinities: 49: want 50 to 10000
}
