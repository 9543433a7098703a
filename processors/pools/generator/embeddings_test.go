package generator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// spaced returns a configuration in which similar pins of home are far apart.
func spaced() Config {
	cfg := withoutExploration()
	cfg.Embeddings.Timeout = time.Minute
	changeHome(cfg.Feeds, func(home *rules.Feed) { home.Spacing.Strength = 50 })
	return cfg
}

// lookups records the requested pins. pin:0 and pin:1 have the same embedding, pin:2 has none, and pin:3 is unknown.
type lookups [][]schemas.PinID

func (l *lookups) embeddings(_ context.Context, pins []schemas.PinID) (map[schemas.PinID][]float32, error) {
	*l = append(*l, slices.Sorted(slices.Values(pins)))
	return map[schemas.PinID][]float32{"pin:0": {1, 0}, "pin:1": {2, 0}, "pin:2": nil}, nil
}

func preview(t *testing.T, g *Generator, feed string) *schemas.Chunk {
	t.Helper()
	return must.Get(g.Chunk(t.Context(), schemas.ChunkRequest{User: poolstest.Owner, Feed: feed, Limit: 9, Peek: true}))(t)
}

// A feed with spacing looks up the embeddings of its candidates, each pin once until it expires. An unknown pin is looked up by
// each chunk. Other feeds look up none.
func TestEmbeddings_OfCandidatesSpaceSimilarPins(t *testing.T) {
	var asked lookups
	now := time.Unix(1e9, 0)
	g := generatorWith(t, spaced(), Deps{Rows: newFakePools(4), Embeddings: asked.embeddings, Now: func() time.Time { return now }})
	expectPins(t, preview(t, g, "plain").Served.Items, "pin:0", "pin:1", "pin:2", "pin:3")
	for range 2 {
		c := preview(t, g, rules.Home)
		expectPins(t, c.Served.Items, "pin:0", "pin:2", "pin:3", "pin:1")
		expect.NoDiff(t, c.Degraded, nil, "degraded")
	}
	now = now.Add(DefaultConfig().Embeddings.Expiry)
	preview(t, g, rules.Home)
	all := []schemas.PinID{"pin:0", "pin:1", "pin:2", "pin:3"}
	expect.NoDiff(t, asked, lookups{all, {"pin:3"}, all}, "lookups")
}

// Popular pins that fill a short chunk are spaced, too.
func TestEmbeddings_OfPopularPins(t *testing.T) {
	g := generatorWith(t, spaced(), Deps{
		Rows: newFakePools(1), Popular: popularOf(popularPin(1, 9), popularPin(2, 5)),
		Embeddings: func(_ context.Context, pins []schemas.PinID) (map[schemas.PinID][]float32, error) {
			return map[schemas.PinID][]float32{"pin:0": {1}, "pin:top-1": {1}, "pin:top-2": nil}, nil
		},
	})
	expectPins(t, preview(t, g, rules.Home).Served.Items, "pin:0", "pin:top-2", "pin:top-1")
}

// If the embeddings cannot be read, the chunk is that of a feed without spacing, and says so.
func TestEmbeddings_DegradedWithoutLookup(t *testing.T) {
	for name, lookup := range map[string]Embeddings{
		"no lookup": nil,
		"failed": func(context.Context, []schemas.PinID) (map[schemas.PinID][]float32, error) {
			return nil, errors.New("store")
		},
		"late": func(ctx context.Context, _ []schemas.PinID) (map[schemas.PinID][]float32, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	} {
		cfg := spaced()
		cfg.Embeddings.Timeout = time.Millisecond
		c := preview(t, generatorWith(t, cfg, Deps{Rows: newFakePools(3), Embeddings: lookup}), rules.Home)
		expect.NoDiff(t, c.Degraded, []string{degradedEmbeddings}, "%s: degraded", name)
		expectPins(t, c.Served.Items, "pin:0", "pin:1", "pin:2")
	}
}

// The cache has at most CachedPins pins.
func TestEmbeddings_CacheIsBounded(t *testing.T) {
	cfg := DefaultConfig().Embeddings
	cfg.CachedPins = 4
	x := newVectors(cfg, func(_ context.Context, pins []schemas.PinID) (map[schemas.PinID][]float32, error) {
		return map[schemas.PinID][]float32{pins[0]: {1}}, nil
	}, time.Now)
	for n := range 20 {
		must.OK(t, x.addLookedUp(t.Context(), map[schemas.PinID]rules.Vector{}, []schemas.PinID{poolstest.PinID(n)}))
		expect.AtMost(t, len(x.known), cfg.CachedPins, "cached pins")
	}
}

func TestWhy_NamesSimilarPin(t *testing.T) {
	var asked lookups
	g := generatorWith(t, spaced(), Deps{Rows: newFakePools(4), Embeddings: asked.embeddings})
	w := must.Get(g.Why(t.Context(), schemas.WhyRequest{User: poolstest.Owner, Pin: "pin:1", Feed: rules.Home, Limit: 2}))(t)
	if w.Fate != schemas.FateWaiting || w.Reason != schemas.ReasonSimilar || !slices.Equal(w.By, schemas.List[schemas.ID]{"pin:0"}) {
		t.Errorf("got %s %s by %v, want waiting, because it is similar to pin:0", w.Fate, w.Reason, w.By)
	}
	if c := w.Candidates[0]; c.Parts["spacing"] != -50 || c.RankScore != -51 {
		t.Errorf("got %+v, want the score -51 with -50 for spacing", c)
	}
}
