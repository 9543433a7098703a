package cassandra_test

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
)

// Validate reports all invalid values at once.
func ExampleConfig_Validate() {
	cfg := cassandra.DefaultConfig()
	cfg.Keyspace, cfg.Timeout = "my feeds", time.Hour
	fmt.Println(cfg.Validate())
	// Output:
	// timeout: 1h: want 10ms to 1m
	// keyspace: "my feeds": want a letter, then at most 47 of a-z, 0-9 and _
}
