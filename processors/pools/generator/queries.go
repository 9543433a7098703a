package generator

import (
	"context"
	"fmt"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// MaxWaiting is the maximum result of Waiting.
const MaxWaiting = 100

// errPulledNotLoaded is returned while the pulled pins are not loaded, because a pool without them would be incomplete.
var errPulledNotLoaded = fmt.Errorf("%s is still being read: try again later", topics.RecentsPulled)

// readComplete is like read, but returns errPulledNotLoaded while the pulled pins are not loaded.
func (g *Generator) readComplete(ctx context.Context, user schemas.UserID, f func(*view) error) error {
	if !g.deps.Pulled.Ready() {
		return errPulledNotLoaded
	}
	return g.read(ctx, user, func(v *view, _ rows.Snapshot) error { return f(v) })
}

// Pool returns the limit best candidates of a user and source, and the number of candidates up to the cap. It changes
// nothing. An unknown source has no candidates.
func (g *Generator) Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	p := &schemas.Pool{Source: source, Items: []schemas.PoolItem{}}
	err := g.readComplete(ctx, user, func(v *view) error {
		var offered []layout.Candidate
		if source == schemas.FromPopular {
			offered = g.deps.Popular.candidates()
		}
		all, err := v.bestWith(offered, source, g.pools.MaxCandidates)
		if err != nil {
			return err
		}
		p.Total = len(all)
		for i := range all[:min(len(all), max(limit, 0))] {
			c := &all[i]
			p.Items = append(p.Items, schemas.PoolItem{Pin: c.Pin, PoolScore: c.PoolScore, Time: schemas.Timestamp(c.Created), Facets: c.Facets})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read pool %s of %s: %w", source, user, err)
	}
	return p, nil
}

// Waiting returns the number of pins that a visit of the feed home could show, up to MaxWaiting. It does not count pins
// that a visit would defer or may not show now. It does not call external sources and the model, because it is
// called often.
func (g *Generator) Waiting(ctx context.Context, user schemas.UserID) (int, error) {
	feed, arm, ok := g.feeds.Load().For(rules.Home, user)
	if !ok {
		feed = rules.Feed{DefaultShare: 1}
	}
	c := &composition{ChunkRequest: schemas.ChunkRequest{User: user, Feed: rules.Home}, rules: feed, arm: arm}
	pins, err := g.waiting(ctx, c)
	if err != nil {
		return 0, fmt.Errorf("count candidates of %s: %w", user, err)
	}
	return min(len(pins), MaxWaiting), nil
}

// waiting returns the pins that a visit could show. Like arrange, it looks up only the counted pins among the seen pins.
func (g *Generator) waiting(ctx context.Context, c *composition) ([]schemas.PinID, error) {
	if err := g.readComplete(ctx, c.User, func(v *view) error { return g.gatherAll(c, v) }); err != nil {
		return nil, err
	}
	visit := rules.Visit{User: c.User, Time: schemas.MicrosOf(g.deps.Now()), Limit: MaxWaiting, Memory: c.memory}
	pins := c.rules.Waiting(visit, g.deps.Extensions.admitted(c), c.signals)
	pins = pins[:min(len(pins), MaxWaiting)]
	seen, err := g.seen(ctx, c.User, append(c.bestOfPools(), pins...))
	if err != nil || len(seen) == 0 {
		return pins, err
	}
	c.exact = true
	if err := g.readComplete(ctx, c.User, func(v *view) error { return g.filter(c, v) }); err != nil {
		return nil, err
	}
	return c.rules.Waiting(visit, g.deps.Extensions.admitted(c), c.signals), nil
}
