package layout

import (
	"encoding/binary"
	"math"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// TimeBytes is the length of a time in a row.
const TimeBytes = 8

// ReadGraph reads the registers of a user. All ids share one string and the maps are allocated with their final size, because
// many users follow hundreds of followees.
func ReadGraph(t Table, m *Buffers) (visibility.Graph, error) {
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
	g := visibility.Graph{
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
