package related

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// The pins of a board with the longest facets, and the interests of a pin, may need more than one record per partition.
func TestPairs_SplitsRecordsByBytes(t *testing.T) {
	serde := must.Get(schemas.NewSerde[schemas.RelatedPairs]("related-pairs-value", 1, nil))(t)
	long := func(id string) string { return id + strings.Repeat("x", schemas.MaxIDBytes-len(id)) }
	var interests []schemas.InterestID
	for i := range schemas.MaxInterests {
		interests = append(interests, schemas.InterestID(long(fmt.Sprintf("interest:%d-", i))))
	}
	var changes []change
	for _, of := range interests {
		for _, other := range interests {
			changes = append(changes, change{of: schemas.ID(of), neighbor: &schemas.Neighbor{ID: schemas.ID(other), Quality: 1}, weight: 1, time: 1})
		}
	}
	for n := range 100 {
		other := schemas.Neighbor{ID: schemas.ID(long(fmt.Sprintf("pin:%d-", n))), Quality: 1, Facets: schemas.Facets{Interests: interests}}
		changes = append(changes, change{of: "pin:saved", neighbor: &other, weight: 1, time: 1})
	}
	want := len(changes)
	const removed = 2000
	for n := range removed {
		changes = append(changes, change{of: schemas.ID(long(fmt.Sprintf("pin:%d-", n))), removed: schemas.ID(long("pin:deleted"))})
	}
	got, gotRemoved := 0, 0
	for _, rec := range pairs(changes) {
		expect.AtMost(t, len(must.Get(serde.Encode(rec))(t)), 512<<10, "bytes of %d pairs", len(rec.Pairs))
		expect.Error(t, rec.Validate(), "", "Validate")
		got, gotRemoved = got+len(rec.Pairs), gotRemoved+len(rec.Removed)
	}
	expect.Equal(t, [2]int{got, gotRemoved}, [2]int{want, removed}, "pairs and removed neighbors")
}

// A record has a neighbor once, with each version that it had.
func TestPairs_KeepsVersionsOfNeighbor(t *testing.T) {
	of := func(version schemas.Version) *schemas.Neighbor {
		return &schemas.Neighbor{ID: "pin:a", Version: version}
	}
	got := pairs([]change{{of: "pin:1", neighbor: of(1)}, {of: "pin:2", neighbor: of(1)}, {of: "pin:1", neighbor: of(2)}})
	want := []*schemas.RelatedPairs{{
		Pins:  []schemas.Neighbor{*of(1), *of(2)},
		Pairs: []schemas.Pair{{Of: "pin:1"}, {Of: "pin:2"}, {Of: "pin:1", Neighbor: 1}},
	}}
	expect.NoDiff(t, got, want, "the records differ")
}
