package proctest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
)

// Each arrangement contains every event, some of them repeated. A group must reach the same state from all arrangements.
func ExampleArrange() {
	events := []string{"create", "follow", "unfollow", "delete"}
	for _, seed := range []uint64{1, 2} {
		pieces := proctest.Arrange(rand.New(rand.NewPCG(seed, 0)), events)
		all := slices.Concat(pieces...)
		slices.Sort(all)
		fmt.Println(pieces, slices.Compact(all))
	}
	// Output:
	// [[delete unfollow create follow follow] [unfollow]] [create delete follow unfollow]
	// [[delete unfollow follow delete] [delete] [create]] [create delete follow unfollow]
}
