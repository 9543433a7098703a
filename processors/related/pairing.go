package related

import (
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// change adds a neighbor to a pin or interest, or removes a deleted pin from the neighbors of a pin.
type change struct {
	of       schemas.ID
	neighbor *schemas.Neighbor
	removed  schemas.ID // "": the neighbor is added
	weight   float64
	time     schemas.Micros
}

const numbers = 32 // bytes of a change's numbers and of the length of its id

// remove sends the removal of a deleted pin from the neighbors of a pin.
func (g *group) remove(tx *rows.Tx, of, deleted schemas.ID) {
	g.out.Add(tx, tx.PartitionOf(string(of)), change{of: of, removed: deleted}, len(of)+len(deleted)+numbers)
}

// add sends a neighbor for a pin or interest.
func (g *group) add(tx *rows.Tx, of schemas.ID, n *schemas.Neighbor, weight float64, at schemas.Micros) {
	bytes := len(of) + numbers + n.MaxEncodedBytes()
	g.out.Add(tx, tx.PartitionOf(string(of)), change{of: of, neighbor: n, weight: weight, time: at}, bytes)
}

// addInterests pairs the first limit interests of a pin with one another.
func (g *group) addInterests(tx *rows.Tx, ids []schemas.InterestID, limit int, weight float64, at schemas.Micros) {
	ids = ids[:min(len(ids), limit)]
	for _, other := range ids {
		n := &schemas.Neighbor{ID: schemas.ID(other), Quality: 1}
		for _, of := range ids {
			if of != other {
				g.add(tx, schemas.ID(of), n, weight, at)
			}
		}
	}
}

// maxPairsBytes bounds the encoded pins and pairs of a record. It is below the minimum of rows.Config.MaxValueBytes, 512
// KiB.
const maxPairsBytes = 400 << 10

// pairs returns the records of changes. A record has each version of a neighbor once.
func pairs(changes []change) (recs []*schemas.RelatedPairs) {
	type version struct {
		id     schemas.ID
		number schemas.Version
	}
	var places map[version]int32 // of the pins of the last record
	size := maxPairsBytes
	for i := range changes {
		c := &changes[i]
		pair, pin := len(c.of)+len(c.removed)+numbers, 0
		if c.removed == "" {
			pin = c.neighbor.MaxEncodedBytes()
		}
		if size+pair+pin > maxPairsBytes {
			recs, places, size = append(recs, &schemas.RelatedPairs{}), map[version]int32{}, 0
		}
		rec := recs[len(recs)-1]
		size += pair
		if c.removed != "" {
			rec.Removed = append(rec.Removed, schemas.RemovedNeighbor{Of: c.of, Neighbor: c.removed})
			continue
		}
		v := version{c.neighbor.ID, c.neighbor.Version}
		place, known := places[v]
		if !known {
			place = int32(len(rec.Pins))
			places[v] = place
			rec.Pins = append(rec.Pins, *c.neighbor)
			size += pin
		}
		rec.Pairs = append(rec.Pairs, schemas.Pair{Of: c.of, Neighbor: place, Weight: c.weight, Time: c.time})
	}
	return recs
}
