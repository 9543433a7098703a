package materialize_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/materialize"
)

// Bounds of the batch size.
func ExampleConfig_Validate() {
	cfg := materialize.DefaultConfig()
	fmt.Println(cfg.MaxBatchRecords, cfg.Validate())
	cfg.MaxBatchRecords = 0
	fmt.Println(cfg.Validate())
	// Output:
	// 5000 <nil>
	// max_batch_records: 0: want 1 to 100000
}
