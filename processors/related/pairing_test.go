package related

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// The pins of a board with the longest facets, and the interests of a pin, may need more than one record per partition.
func TestPairing_SplitsRecordsByBytes(t *testing.T) {
	serde, err := schemas.NewSerde[schemas.RelatedPairs]("related-pairs-value", 1, nil)
	must.OK(t, err)
	long := func(id string) string { return id + strings.Repeat("x", schemas.MaxIDBytes-len(id)) }
	var interests []schemas.InterestID
	for i := range schemas.MaxInterests {
		interests = append(interests, schemas.InterestID(long(fmt.Sprintf("interest:%d-", i))))
	}
	p := newPairing(1)
	p.interests(interests, len(interests), 1, 1)
	want := len(interests) * (len(interests) - 1)
	for n := range 100 {
		other := schemas.Neighbor{ID: schemas.ID(long(fmt.Sprintf("pin:%d-", n))), Quality: 1, Facets: schemas.Facets{Interests: interests}}
		p.pair("pin:saved", &other, 1, 1)
		want++
	}
	const removed = 2000
	for n := range removed {
		p.remove(schemas.ID(long(fmt.Sprintf("pin:%d-", n))), schemas.ID(long("pin:deleted")))
	}
	got, gotRemoved := 0, 0
	for _, rec := range append(p.byPartition[0].full, p.byPartition[0].RelatedPairs) {
		value, err := serde.Encode(&rec)
		if err != nil || len(value) > 512<<10 {
			t.Errorf("%d pairs take %d bytes, %v", len(rec.Pairs), len(value), err)
		}
		if err := rec.Validate(); err != nil {
			t.Error(err)
		}
		got, gotRemoved = got+len(rec.Pairs), gotRemoved+len(rec.Removed)
	}
	if got != want || gotRemoved != removed {
		t.Errorf("%d pairs and %d removed neighbors, want %d and %d", got, gotRemoved, want, removed)
	}
	if p.reset(); len(p.byPartition[0].full)+len(p.byPartition[0].Pairs)+len(p.byPartition[0].Removed) > 0 {
		t.Error("reset left pairs")
	}
}
