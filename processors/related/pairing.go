package related

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// pairing gathers pairs by the partition of the one that has the neighbour.
type pairing struct {
	byPartition []schemas.RelatedPairs
}

func newPairing(partitions int32) *pairing {
	return &pairing{byPartition: make([]schemas.RelatedPairs, partitions)}
}

func (p *pairing) reset() {
	for i := range p.byPartition {
		rec := &p.byPartition[i]
		rec.Pins, rec.Pairs = rec.Pins[:0], rec.Pairs[:0]
	}
}

// pair gives one more neighbour to a pin or interest.
func (p *pairing) pair(of schemas.ID, n *schemas.Neighbour, weight float64, at schemas.Micros) {
	rec := &p.byPartition[topics.Partition(string(of), int32(len(p.byPartition)))]
	place := slices.IndexFunc(rec.Pins, func(known schemas.Neighbour) bool { return known.ID == n.ID })
	if place < 0 {
		place = len(rec.Pins)
		rec.Pins = append(rec.Pins, *n)
	}
	rec.Pairs = append(rec.Pairs, schemas.Pair{Of: of, Neighbour: int32(place), Weight: weight, Time: at})
}

// interests makes the first of a pin's interests neighbours of one another.
func (p *pairing) interests(ids []schemas.InterestID, most int, weight float64, at schemas.Micros) {
	ids = ids[:min(len(ids), most)]
	for _, of := range ids {
		for _, other := range ids {
			if of != other {
				p.pair(schemas.ID(of), &schemas.Neighbour{ID: schemas.ID(other), Quality: 1}, weight, at)
			}
		}
	}
}
