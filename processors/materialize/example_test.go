package materialize_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/materialize"
)

// Bounds of the batch size.
func ExampleConfig_Validate() {
	cfg := materialize.DefaultConfig()
	fmt.Println(cfg.MaxPoll, cfg.Validate())
	cfg.MaxPoll = 0
	fmt.Println(cfg.Validate())
	// Output:
	// 5000 <nil>
	// max_poll: 0: want 1 to 100000
}
