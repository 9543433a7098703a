package actors_test

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/schemas"
)

// A strong affinity multiplies the edge weight by five; a negative one divides it by five. For views, features have
// only the pin's author and interests, and no attributes of the viewer. The step that contains an affinity of 0 must
// have weight 1.
func ExampleConfig() {
	cfg := actors.DefaultConfig()
	cfg.EdgeWeightSteps = actors.Steps{{MinAffinity: math.Inf(-1), Weight: 0.2}, {MinAffinity: -2, Weight: 1}, {MinAffinity: 10, Weight: 5}}
	cfg.JoinedAttributes = actors.Joins{schemas.View: {Object: []string{"author", "interests"}, Actor: []string{}}}
	fmt.Println(cfg.Validate())

	cfg.EdgeWeightSteps = actors.Steps{{MinAffinity: math.Inf(-1), Weight: 0.5}, {MinAffinity: 10, Weight: 5}}
	fmt.Println(cfg.Validate())
	// Output:
	// <nil>
	// edge_weight_steps: weight 0.5 at affinity 0: want 1, the initial weight of edges
}
