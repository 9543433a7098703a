package pools

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// graph holds the live registers of a user.
type graph struct {
	follows   map[schemas.ID]float32 // followee → weight
	blocks    map[schemas.ID]struct{}
	blockedBy map[schemas.ID]struct{}
}

// readGraph reads the registers of a user. All ids share one string and the maps are allocated with their final size, because
// many users follow hundreds of followees.
func readGraph(t table, m *scratch) (graph, error) {
	m.text, m.ends, m.weights = m.text[:0], m.ends[:0], m.weights[:0]
	err := t.Scan(rows.Scan{Prefix: []byte{rowGraph}}, func(row, value []byte) bool {
		if len(row) < 2 {
			return true
		}
		m.text = append(m.text, row[1:]...)
		m.ends = append(m.ends, len(m.text))
		m.weights = append(m.weights, parseEdgeWeight(value))
		return true
	})
	g := graph{
		follows: make(map[schemas.ID]float32, len(m.ends)), blocks: map[schemas.ID]struct{}{}, blockedBy: map[schemas.ID]struct{}{},
	}
	all, start := string(m.text), 0
	for i, end := range m.ends {
		register, other := all[start], schemas.ID(all[start+1:end])
		switch start = end; register {
		case regFollow:
			g.follows[other] = m.weights[i]
		case regBlock:
			g.blocks[other] = struct{}{}
		case regBlocked:
			g.blockedBy[other] = struct{}{}
		}
	}
	return g, err
}

// Follows returns the followees of a user. rows are the user's rows, by name.
func Follows(rows map[string][]byte) map[schemas.Followee]struct{} {
	follows := map[schemas.Followee]struct{}{}
	for row := range rows {
		if len(row) > 2 && row[0] == rowGraph && row[1] == regFollow {
			follows[schemas.Followee(row[2:])] = struct{}{}
		}
	}
	return follows
}

func has[T ~string, V any](set map[schemas.ID]V, id T) bool {
	_, ok := set[schemas.ID(id)]
	return ok
}

// blocked reports whether a block hides a pin.
func (g graph) blocked(f *schemas.Facets) bool {
	return g.eachBlock(f, func(schemas.ID) bool { return false })
}

// eachBlock calls yield for each blocked id that hides a pin, until yield returns false, and reports whether there was one.
// It visits the author if either side blocks the other, and the board and interests that the user blocks.
func (g graph) eachBlock(f *schemas.Facets, yield func(schemas.ID) bool) bool {
	if len(g.blocks) == 0 && len(g.blockedBy) == 0 {
		return false
	}
	found := false
	block := func(id schemas.ID, lies bool) (goOn bool) {
		if lies {
			found = true
		}
		return !lies || yield(id)
	}
	goOn := block(schemas.ID(f.Author), has(g.blocks, f.Author) || has(g.blockedBy, f.Author)) &&
		block(schemas.ID(f.Board), has(g.blocks, f.Board))
	for i := 0; goOn && i < len(f.Interests); i++ {
		goOn = block(schemas.ID(f.Interests[i]), has(g.blocks, f.Interests[i]))
	}
	return found
}

// justified reports whether a live edge of the source justifies a pin. Candidates of related and of external sources need
// none.
func (g graph) justified(source schemas.Source, f *schemas.Facets) bool {
	switch source {
	case schemas.Following:
		return has(g.follows, f.Author) || has(g.follows, f.Board)
	case schemas.FromInterest:
		for _, id := range f.Interests {
			if has(g.follows, id) {
				return true
			}
		}
		return false
	}
	return true
}

// edge applies the current state of a register. Later records of a register are newer states; see schemas.Edge.
func (g *group) edge(tx *rows.Tx, e *schemas.Edge) error {
	register, err := checkEdge(tx.Key(), e)
	if err != nil {
		return err
	}
	if g.deleted.Has(e.User) {
		tx.Count(dropDeletedUser)
		return g.forgetMe(tx, e)
	}
	own := tx.Own()
	if e.Erased {
		if err := sweepLater(tx, e.User); err != nil {
			return err
		}
	}
	switch {
	case register == regFollow:
		return g.follow(tx, own, e)
	case e.Live:
		return own.Put(graphRow(register, e.Other), []byte{})
	}
	return endBlock(own, register, e)
}

// appendEdgeWeight returns the encoded weight of a live register. A weight of 0 means 1.
func appendEdgeWeight(weight float32) []byte {
	if weight == 0 || weight == 1 {
		return []byte{}
	}
	return binary.BigEndian.AppendUint32(nil, math.Float32bits(weight))
}

// parseEdgeWeight parses the weight of a live register, with or without a time before it. A malformed value, which only
// corruption can cause, counts as 1.
func parseEdgeWeight(value []byte) float32 {
	if len(value) == timeBytes+4 {
		value = value[timeBytes:]
	}
	if len(value) != 4 {
		return 1
	}
	return math.Float32frombits(binary.BigEndian.Uint32(value))
}

func checkEdge(key string, e *schemas.Edge) (register byte, err error) {
	if key != string(e.User) {
		return 0, schemas.Bad(fmt.Sprintf("edge: key %q is not the user %q", key, e.User))
	}
	if _, err := schemas.ParseFollowee(string(e.Other)); err != nil {
		return 0, schemas.Bad("edge: other: " + err.Error())
	}
	if w := float64(e.Weight); !(w >= 0) || math.IsInf(w, 0) {
		return 0, schemas.Bad(fmt.Sprintf("edge: weight %v: want no negative number", e.Weight))
	}
	switch e.Kind {
	case schemas.FollowEdge:
		return regFollow, nil
	case schemas.BlockEdge:
		return regBlock, nil
	case schemas.BlockedEdge:
		return regBlocked, nil
	}
	return 0, schemas.Bad(fmt.Sprintf("edge: unknown kind %q", e.Kind))
}
