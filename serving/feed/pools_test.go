package feed

import (
	"context"
	"testing"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// fakePools returns one pool for every user and source.
type fakePools []schemas.PinID

func (p fakePools) Pool(_ context.Context, _ schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	pool := &schemas.Pool{Source: source, Total: len(p)}
	for _, pin := range p[:min(limit, len(p))] {
		pool.Items = append(pool.Items, schemas.PoolItem{Pin: pin})
	}
	return pool, nil
}

func (fakePools) FeedState(_ context.Context, _ schemas.UserID, feed string) (*schemas.FeedState, error) {
	return &schemas.FeedState{Feed: feed, Affinities: []schemas.Affinity{{Facet: "interest:x", Value: 1}}}, nil
}

// Only edges deliver deletions to a pool. For candidates without an edge, the cards have them.
func TestPool_OmitsDeletedPins(t *testing.T) {
	for _, c := range []struct {
		name   string
		source schemas.Source
		limit  int
		err    error
		want   []schemas.PinID
		total  int
	}{
		{name: "related", source: schemas.Related, limit: 10, want: []schemas.PinID{"pin:1", "pin:3", "pin:4"}, total: 3},
		{name: "candidates of another system", source: "partner", limit: 10, want: []schemas.PinID{"pin:1", "pin:3", "pin:4"}, total: 3},
		{name: "limit below the total", source: schemas.Related, limit: 2, want: []schemas.PinID{"pin:1", "pin:3"}, total: 3},
		{name: "following", source: schemas.Following, limit: 2, want: []schemas.PinID{"pin:1", "pin:2"}, total: 4},
		{name: "related, store unavailable", source: schemas.Related, limit: 2, err: errFake, want: []schemas.PinID{"pin:1", "pin:2"}, total: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.deps.Pools = fakePools{"pin:1", "pin:2", "pin:3", "pin:4"}
			r.store.cards["pin:1"] = schemas.Card{PinVersion: schemas.PinVersion{Pin: "pin:1"}}
			r.store.cards["pin:2"] = schemas.Card{PinVersion: schemas.PinVersion{Pin: "pin:2", PinContent: schemas.PinContent{Deleted: true}}}
			r.store.facts.err = c.err
			pool := must.Get(r.Pool(t.Context(), viewer, c.source, c.limit))(t)
			got := convert.All(pool.Items, func(it schemas.PoolItem) schemas.PinID { return it.Pin })
			same(t, "items", got, c.want)
			same(t, "total", pool.Total, c.total)
			same(t, "source", pool.Source, c.source)
			expect.Equal(t, r.store.facts.hits.Load() > 0, c.err != nil, "the fault was hit")
		})
	}
}
