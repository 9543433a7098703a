package generator

import (
	"context"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// Embeddings returns the current embeddings of those of the pins that are known. The embedding of a known pin may be empty.
type Embeddings func(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID][]float32, error)

// EmbeddingsConfig configures the lookup of embeddings for feeds with rules.Spacing. Other feeds look up none.
type EmbeddingsConfig struct {
	Timeout       time.Duration `yaml:"timeout" default:"40ms" range:"1ms..10s" help:"time limit for the lookup of embeddings; also at most half of the visit's remaining time"`
	MaxCandidates int           `yaml:"max_candidates" default:"200" range:"1..1000" help:"maximum number of candidates of a chunk that spacing compares, the best of each source first"`
	CachedPins    int           `yaml:"cached_pins" default:"100000" range:"1000..10000000" help:"maximum number of pins whose embeddings are in memory, in about 400 bytes each"`
	Expiry        time.Duration `yaml:"expiry" default:"10m" range:"1s..24h" help:"time after which the embedding of a pin is looked up again"`
}

// vectors looks up the directions of embeddings, and keeps them for a while. It is safe for concurrent use.
type vectors struct {
	cfg    EmbeddingsConfig
	lookup Embeddings
	guard  *external.Guard
	now    func() time.Time

	mu    sync.Mutex
	known map[schemas.PinID]knownVector
}

type knownVector struct {
	rules.Vector
	until time.Time
}

func newVectors(cfg EmbeddingsConfig, lookup Embeddings, now func() time.Time) *vectors {
	return &vectors{cfg: cfg, lookup: lookup, guard: external.NewGuard(cfg.Timeout), now: now, known: map[schemas.PinID]knownVector{}}
}

// gatherEmbeddings adds the embeddings of the best candidates to the signals, if the feed uses them.
func (g *Generator) gatherEmbeddings(ctx context.Context, c *composition) {
	if c.rules.Spacing.Strength == 0 {
		return
	}
	missing := g.vectors.addCached(c.signals.Vectors, scored(c.pools, g.cfg.Embeddings.MaxCandidates))
	if len(missing) == 0 {
		return
	}
	err := g.vectors.addLookedUp(ctx, c.signals.Vectors, missing)
	g.metrics.called(degradedEmbeddings, err)
	if err != nil {
		c.degrade(degradedEmbeddings)
	}
}

// addCached adds the known vectors of candidates, and returns the pins that must be looked up.
func (x *vectors) addCached(to map[schemas.PinID]rules.Vector, list []Scored) (missing []schemas.PinID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.now()
	for i := range list {
		pin := list[i].Pin
		if _, done := to[pin]; done {
			continue
		}
		v := x.known[pin]
		if !now.Before(v.until) {
			missing = append(missing, pin)
		}
		to[pin] = v.Vector // also once for a missing pin in several sources; an expired one stays if the lookup fails
	}
	return missing
}

// addLookedUp looks up pins, and adds their vectors. An unknown pin is looked up again for the next chunk: it may be new.
func (x *vectors) addLookedUp(ctx context.Context, to map[schemas.PinID]rules.Vector, pins []schemas.PinID) error {
	return x.guard.Do(ctx, func(ctx context.Context) error {
		found, err := x.lookup(ctx, pins)
		x.mu.Lock()
		defer x.mu.Unlock()
		for pin, embedding := range found {
			v := rules.NewVector(embedding)
			to[pin], x.known[pin] = v, knownVector{v, x.now().Add(x.cfg.Expiry)}
		}
		for pin := range x.known { // in no order
			if len(x.known) <= x.cfg.CachedPins {
				break
			}
			delete(x.known, pin)
		}
		return err
	})
}

// scored returns n candidates: the best of each pool, then the second of each, and so on. A pin is returned once for
// each of its sources. The model's score of a pin applies to all of these.
func scored(pools []rules.Pool, n int) []Scored {
	var list []Scored
	for rank := 0; ; rank++ {
		before := len(list)
		for _, p := range pools {
			if rank < len(p.Candidates) && len(list) < n {
				list = append(list, Scored{p.Source, p.Candidates[rank]})
			}
		}
		if len(list) == before {
			return list
		}
	}
}
