package retries_test

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/retries"
)

// Letters that are tried twice, after ten seconds and after twenty more, one a second of each kind; then they rest until
// somebody orders them. What is out of bounds is told all at
// once.
func ExampleConfig() {
	cfg := retries.DefaultConfig()
	cfg.Attempts, cfg.FirstDelay, cfg.Rate = 2, 10*time.Second, 1
	fmt.Println(cfg.Validate())

	cfg.MaxDelay, cfg.TopicRate = time.Second, 0
	fmt.Println(cfg.Validate())
	// Output:
	// <nil>
	// max_delay: 1s: want 10s to 168h
	// topic_rate: 0: want 0.001 to 10000
}
