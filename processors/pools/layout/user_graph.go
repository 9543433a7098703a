package layout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

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
