package related

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// maxPairsBytes bounds the encoded pins and pairs of a record. It is below the minimum of rows.Config.MaxValueBytes, 512
// KiB.
const maxPairsBytes = 400 << 10

// pairing collects pairs by the partition of the owner that gets the neighbor.
type pairing struct {
	byPartition []pairs
}

// pairs holds the pairs of one partition.
type pairs struct {
	schemas.RelatedPairs
	size int                    // upper bound of their encoded bytes
	full []schemas.RelatedPairs // full records
}

func newPairing(partitions int32) *pairing {
	return &pairing{byPartition: make([]pairs, partitions)}
}

func (p *pairing) reset() {
	for i := range p.byPartition {
		b := &p.byPartition[i]
		b.Pins, b.Pairs, b.Removed, b.size, b.full = b.Pins[:0], b.Pairs[:0], b.Removed[:0], 0, nil
	}
}

// of returns the pairs of an owner's partition, with room for size more bytes in the current record.
func (p *pairing) of(owner schemas.ID, size int) *pairs {
	b := &p.byPartition[topics.Partition(string(owner), int32(len(p.byPartition)))]
	if b.size+size > maxPairsBytes {
		b.full = append(b.full, b.RelatedPairs)
		b.RelatedPairs, b.size = schemas.RelatedPairs{}, 0
	}
	return b
}

const numbers = 32 // bytes of a pair's numbers and of the length of its id

// remove adds the removal of a deleted pin from the neighbors of a pin.
func (p *pairing) remove(of, deleted schemas.ID) {
	size := len(of) + len(deleted) + numbers
	b := p.of(of, size)
	b.size += size
	b.Removed = append(b.Removed, schemas.RemovedNeighbor{Of: of, Neighbor: deleted})
}

// pair adds a neighbor for a pin or interest.
func (p *pairing) pair(of schemas.ID, n *schemas.Neighbor, weight float64, at schemas.Micros) {
	b := p.of(of, len(of)+numbers+n.MaxEncodedBytes())
	b.size += len(of) + numbers
	place := slices.IndexFunc(b.Pins, func(known schemas.Neighbor) bool { return known.ID == n.ID })
	if place < 0 {
		place = len(b.Pins)
		b.Pins = append(b.Pins, *n)
		b.size += n.MaxEncodedBytes()
	}
	b.Pairs = append(b.Pairs, schemas.Pair{Of: of, Neighbor: int32(place), Weight: weight, Time: at})
}

// interests pairs the first limit interests of a pin with one another.
func (p *pairing) interests(ids []schemas.InterestID, limit int, weight float64, at schemas.Micros) {
	ids = ids[:min(len(ids), limit)]
	for _, of := range ids {
		for _, other := range ids {
			if of != other {
				p.pair(schemas.ID(of), &schemas.Neighbor{ID: schemas.ID(other), Quality: 1}, weight, at)
			}
		}
	}
}
