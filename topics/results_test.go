package topics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
	if diff := cmp.Diff(want, now.Since(before)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
