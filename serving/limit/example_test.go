package limit_test

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/serving/limit"
)

// A class has a limit of two requests, and the machine is idle. The third request is rejected and does not wait.
func ExampleGates() {
	idle := func() (_ time.Duration, of uint64) { return 0, 0 }
	gates := limit.NewGates(limit.DefaultConfig(), 2, nil, idle, time.Now)
	fmt.Println(gates.Enter("feed"), gates.Enter("feed"), gates.Enter("feed"))
	fmt.Println(gates.Enter("features"))
	gates.Leave("feed")
	fmt.Println(gates.Enter("feed"))
	// Output:
	// true true false
	// true
	// true
}
