package insights_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/insights"
)

// Sequences are kept for whole days.
func ExampleConfig_SequenceDays() {
	fmt.Println(insights.DefaultConfig().SequenceDays())
	// Output:
	// 35
}
