package generation_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/topics/generation"
)

// A build takes a group from one generation to the next.
func Example() {
	now := generation.Record{Group: "pools", Active: generation.First}
	building, _ := now.Start(2, "rebuild all")
	cuttingOver, _ := building.CutOver()
	_, err := cuttingOver.Abort()
	fmt.Println(err)
	now, _ = cuttingOver.Finish()
	fmt.Println(generation.Name(now.Group, now.Active), now.State())
	// Output:
	// generations of pools: abort is not possible while the state is cutting over
	// pools.2 stable
}
