package related

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// maxPairsBytes bounds the encoded pins and pairs of a record, below the least rows.Config.MaxValueBytes, 512 KiB.
const maxPairsBytes = 400 << 10

// pairing gathers pairs by the partition of the one that has the neighbour.
type pairing struct {
	byPartition []pairs
}

// pairs are those of one partition.
type pairs struct {
	schemas.RelatedPairs
	size int                    // an upper bound of their encoded bytes
	full []schemas.RelatedPairs // records that have no room for more
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

// of returns what goes to the partition of an owner, in a record that has room for so many bytes more.
func (p *pairing) of(owner schemas.ID, size int) *pairs {
	b := &p.byPartition[topics.Partition(string(owner), int32(len(p.byPartition)))]
	if b.size+size > maxPairsBytes {
		b.full = append(b.full, b.RelatedPairs)
		b.RelatedPairs, b.size = schemas.RelatedPairs{}, 0
	}
	return b
}

const numbers = 32 // bytes of a pair, with the length of its id

// remove takes a deleted pin away from the neighbours of a pin.
func (p *pairing) remove(of, deleted schemas.ID) {
	size := len(of) + len(deleted) + numbers
	b := p.of(of, size)
	b.size += size
	b.Removed = append(b.Removed, schemas.RemovedNeighbour{Of: of, Neighbour: deleted})
}

// pair gives one more neighbour to a pin or interest.
func (p *pairing) pair(of schemas.ID, n *schemas.Neighbour, weight float64, at schemas.Micros) {
	b := p.of(of, len(of)+numbers+n.MaxEncodedBytes())
	b.size += len(of) + numbers
	place := slices.IndexFunc(b.Pins, func(known schemas.Neighbour) bool { return known.ID == n.ID })
	if place < 0 {
		place = len(b.Pins)
		b.Pins = append(b.Pins, *n)
		b.size += n.MaxEncodedBytes()
	}
	b.Pairs = append(b.Pairs, schemas.Pair{Of: of, Neighbour: int32(place), Weight: weight, Time: at})
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
