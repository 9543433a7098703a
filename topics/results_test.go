package topics

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestWork_Since(t *testing.T) {
	before := Results{Deliveries: 10, Dropped: map[string]int64{"pools: cap": 5, "pools: seen": 2, "objects: bot": 7}}
	now := Results{
		Deliveries:  25,
		Dropped:     map[string]int64{"pools: cap": 9, "pools: seen": 2, "objects: bot": 3},
		DeadLetters: map[string]int64{"objects: key": 1},
	}
	want := Results{
		Deliveries:  15,
		Dropped:     map[string]int64{"pools: cap": 4, "objects: bot": 3}, // objects was restarted
		DeadLetters: map[string]int64{"objects: key": 1},
	}
	expect.NoDiff(t, now.Since(before), want, "results")
}
