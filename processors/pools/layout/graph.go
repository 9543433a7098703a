package layout

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// ReadGraph reads the registers of a user. All ids share one string and the maps are allocated with their final size, because
// many users follow hundreds of followees.
func ReadGraph(t Table, m *Buffers) (visibility.Graph, error) {
	m.text, m.ends, m.weights = m.text[:0], m.ends[:0], m.weights[:0]
	err := rows.ForEach(t, rows.Scan{Prefix: []byte{KindGraph}}, func(row, value []byte) (bool, error) {
		if len(row) < 2 {
			return true, nil
		}
		weight := float32(1)
		if row[1] == RegisterFollow {
			var err error
			if _, weight, err = ParseFollow(value); err != nil {
				return false, rows.Unreadable(row, err)
			}
		}
		m.text = append(m.text, row[1:]...)
		m.ends = append(m.ends, len(m.text))
		m.weights = append(m.weights, weight)
		return true, nil
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

// formatFollow is the version of the format of follows.
const formatFollow = 1

// AppendFollow appends the value of a live follow: version, time (8 bytes), then weight (4 bytes) unless it is 1. A chunk reads
// all follows of a user.
func AppendFollow(b []byte, at schemas.Micros, weight float32) []byte {
	b = ranked.AppendVersion(append(b, formatFollow), schemas.Version(at))
	if weight == 0 || weight == 1 {
		return b
	}
	return binary.BigEndian.AppendUint32(b, math.Float32bits(weight))
}

// ParseFollow parses the value of a live follow.
func ParseFollow(value []byte) (at schemas.Micros, weight float32, err error) {
	const short, long = 1 + 8, 1 + 8 + 4
	switch {
	case len(value) > 0 && value[0] != formatFollow:
		return 0, 0, &packed.VersionError{Got: value[0], Want: formatFollow}
	case len(value) != short && len(value) != long:
		return 0, 0, packed.ErrTorn
	}
	at, weight = schemas.Micros(ranked.Version(string(value[1:short]))), 1
	if len(value) == long {
		weight = math.Float32frombits(binary.BigEndian.Uint32(value[short:]))
	}
	return at, weight, nil
}

// UserGraph returns what a user follows and blocks, at most limit of each. It does not count the followers, which are not in
// the rows of the pools.
func UserGraph(ctx context.Context, r rows.Reader, user schemas.UserID, limit int) (*schemas.UserGraph, error) {
	g := &schemas.UserGraph{User: user}
	err := r.Read(ctx, string(user), func(s rows.Snapshot) error {
		graph, err := ReadGraph(s, new(Buffers))
		for id, weight := range graph.Follows {
			g.Follows = append(g.Follows, schemas.Followed{ID: id, Weight: weight})
		}
		g.Blocks = slices.Sorted(maps.Keys(graph.Blocks))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read graph of %s: %w", user, err)
	}
	slices.SortFunc(g.Follows, func(a, b schemas.Followed) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.ID, b.ID))
	})
	g.Following, g.Blocking = len(g.Follows), len(g.Blocks)
	g.Follows, g.Blocks = g.Follows[:min(limit, g.Following)], g.Blocks[:min(limit, g.Blocking)]
	return g, nil
}
