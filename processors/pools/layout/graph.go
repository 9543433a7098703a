package layout

import (
	"encoding/binary"
	"math"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

const TimeBytes = 8

// Graph holds the live registers of a user.
type Graph struct {
	Follows   map[schemas.ID]float32 // followee → weight
	Blocks    map[schemas.ID]struct{}
	BlockedBy map[schemas.ID]struct{}
}

// ReadGraph reads the registers of a user. All ids share one string and the maps are allocated with their final size, because
// many users follow hundreds of followees.
func ReadGraph(t Table, m *Buffers) (Graph, error) {
	m.text, m.ends, m.weights = m.text[:0], m.ends[:0], m.weights[:0]
	err := t.Scan(rows.Scan{Prefix: []byte{KindGraph}}, func(row, value []byte) bool {
		if len(row) < 2 {
			return true
		}
		m.text = append(m.text, row[1:]...)
		m.ends = append(m.ends, len(m.text))
		m.weights = append(m.weights, ParseEdgeWeight(value))
		return true
	})
	g := Graph{
		Follows: make(map[schemas.ID]float32, len(m.ends)), Blocks: map[schemas.ID]struct{}{}, BlockedBy: map[schemas.ID]struct{}{},
	}
	all, start := string(m.text), 0
	for i, end := range m.ends {
		register, other := all[start], schemas.ID(all[start+1:end])
		switch start = end; register {
		case RegisterFollow:
			g.Follows[other] = m.weights[i]
		case RegisterBlock:
			g.Blocks[other] = struct{}{}
		case RegisterBlockedBy:
			g.BlockedBy[other] = struct{}{}
		}
	}
	return g, err
}

// Follows returns the followees of a user. rows are the user's rows, by name.
func Follows(rows map[string][]byte) map[schemas.Followee]struct{} {
	follows := map[schemas.Followee]struct{}{}
	for row := range rows {
		if len(row) > 2 && row[0] == KindGraph && row[1] == RegisterFollow {
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
func (g Graph) blocked(f *schemas.Facets) bool {
	return g.EachBlock(f, func(schemas.ID) bool { return false })
}

// EachBlock calls yield for each blocked id that hides a pin, until yield returns false, and reports whether there was one.
// It visits the author if either side blocks the other, and the board and interests that the user blocks.
func (g Graph) EachBlock(f *schemas.Facets, yield func(schemas.ID) bool) bool {
	if len(g.Blocks) == 0 && len(g.BlockedBy) == 0 {
		return false
	}
	found := false
	block := func(id schemas.ID, lies bool) (goOn bool) {
		if lies {
			found = true
		}
		return !lies || yield(id)
	}
	goOn := block(schemas.ID(f.Author), has(g.Blocks, f.Author) || has(g.BlockedBy, f.Author)) &&
		block(schemas.ID(f.Board), has(g.Blocks, f.Board))
	for i := 0; goOn && i < len(f.Interests); i++ {
		goOn = block(schemas.ID(f.Interests[i]), has(g.Blocks, f.Interests[i]))
	}
	return found
}

// Justified reports whether a live edge of the source justifies a pin. Candidates of related and of external sources need
// none.
func (g Graph) Justified(source schemas.Source, f *schemas.Facets) bool {
	switch source {
	case schemas.Following:
		return has(g.Follows, f.Author) || has(g.Follows, f.Board)
	case schemas.FromInterest:
		for _, id := range f.Interests {
			if has(g.Follows, id) {
				return true
			}
		}
		return false
	}
	return true
}

// AppendEdgeWeight returns the encoded weight of a live register. A weight of 0 means 1.
func AppendEdgeWeight(weight float32) []byte {
	if weight == 0 || weight == 1 {
		return []byte{}
	}
	return binary.BigEndian.AppendUint32(nil, math.Float32bits(weight))
}

// ParseEdgeWeight parses the weight of a live register, with or without a time before it. A malformed value, which only
// corruption can cause, counts as 1.
func ParseEdgeWeight(value []byte) float32 {
	if len(value) == TimeBytes+4 {
		value = value[TimeBytes:]
	}
	if len(value) != 4 {
		return 1
	}
	return math.Float32frombits(binary.BigEndian.Uint32(value))
}
