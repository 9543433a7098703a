package retries_test

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/retries"
)

// Dead letters are retried twice, ten seconds after the first failure and twenty seconds after the second, at one per second and
// kind. Then they are parked until an order retries them. Validate reports all values that are out of bounds.
func ExampleConfig() {
	cfg := retries.DefaultConfig()
	cfg.MaxAttempts, cfg.InitialDelay, cfg.KindRate = 2, 10*time.Second, 1
	fmt.Println(cfg.Validate())

	cfg.MaxDelay, cfg.TopicRate = time.Second, 0
	fmt.Println(cfg.Validate())
	// Output:
	// <nil>
	// max_delay: 1s: want 10s to 168h
	// topic_rate: 0: want 0.001 to 10000
}
