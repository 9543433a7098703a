package materialize_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/materialize"
)

// Two stores are filled from the same log, each by a consumer group of its own, whose offsets say what the store has.
// The name is part of the group's, and has its bounds.
func ExampleConfig_Group() {
	for _, store := range []string{"primary", "standby", "Third"} {
		cfg := materialize.DefaultConfig()
		cfg.Store = store
		fmt.Println(cfg.Group(), cfg.Validate())
	}
	// Output:
	// materialize-primary <nil>
	// materialize-standby <nil>
	// materialize-Third store: "Third": want at most 64 bytes of a-z, 0-9 and -
}
