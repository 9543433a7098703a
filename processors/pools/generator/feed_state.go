package generator

import (
	"context"
	"fmt"
	"maps"
	"slices"

	dto "github.com/prometheus/client_model/go"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// FeedState returns a user's state of a feed, and the candidates that a visit now would defer. It changes nothing.
// It does not call external sources and the model, because it is called often.
//
// It returns an error that wraps schemas.ErrUnknownFeed, a *rows.NotOwnerError if this process does not own the user's
// partition, or a read error.
func (g *Generator) FeedState(ctx context.Context, user schemas.UserID, name string) (*schemas.FeedState, error) {
	c, err := g.newComposition(schemas.ChunkRequest{User: user, Feed: name, Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("state of feed %q for %s: %w", name, user, err)
	}
	s := &schemas.FeedState{Feed: name, Arm: c.arm}
	if g.deps.Deleted.Has(user) {
		return s, nil
	}
	if c.rules.Share(schemas.FromPopular) > 0 || c.rules.Fills(schemas.FromPopular) {
		c.offers = map[schemas.Source][]layout.Candidate{}
		g.offerPopular(c)
	}
	c.exact = true
	waiting := map[schemas.Source]int{}
	err = g.read(ctx, user, func(v *view, _ rows.Snapshot) error { return g.gatherState(c, v, waiting) })
	if err != nil {
		return nil, fmt.Errorf("state of feed %q for %s: %w", name, user, err)
	}
	s.Sources = sourceStates(c, waiting)
	s.Affinities, s.Degraded = c.signals.Affinities.Top, c.degraded
	visit := rules.Visit{User: user, Time: schemas.MicrosOf(g.deps.Now()), Limit: c.Limit, Memory: c.memory}
	s.Deferred = c.rules.DeferredCandidates(visit, g.deps.Extensions.admitted(c), c.signals)
	return s, nil
}

// gatherState reads a user's state of a feed, and the number of candidates of each source.
func (g *Generator) gatherState(c *composition, v *view, waiting map[schemas.Source]int) error {
	if err := g.gatherAll(c, v); err != nil {
		return err
	}
	if !c.rules.UsesAffinities() {
		if err := g.gatherAffinities(c, v); err != nil {
			return err
		}
	}
	for _, p := range c.pools {
		all, err := v.bestWith(c.offers[p.Source], p.Source, g.pools.MaxCandidates)
		if err != nil {
			return err
		}
		waiting[p.Source] = len(all)
	}
	return nil
}

// sourceStates returns the state of each source that the feed names, that has candidates, or that is in the memory.
func sourceStates(c *composition, waiting map[schemas.Source]int) []schemas.SourceState {
	known := slices.Collect(maps.Keys(waiting))
	for source := range c.memory.Mix {
		known = append(known, schemas.Source(source))
	}
	targets := c.rules.Targets(known...)
	var list []schemas.SourceState
	for _, source := range slices.Sorted(maps.Keys(targets)) {
		list = append(list, schemas.SourceState{
			Source: source, Waiting: waiting[source], Target: targets[source], Shown: c.memory.Mix[string(source)],
		})
	}
	return list
}

// FeedShares returns the number of items from each source in the chunks of this process, by feed, arm and source.
func (g *Generator) FeedShares() []schemas.FeedShare {
	feeds := *g.feeds.Load()
	var list []schemas.FeedShare
	for _, name := range slices.Sorted(maps.Keys(feeds)) {
		list = append(list, g.sharesOf(name, "", feeds[name])...)
		for _, arm := range feeds[name].ExperimentArms {
			list = append(list, g.sharesOf(name, arm.Feed, feeds[arm.Feed])...)
		}
	}
	return list
}

func (g *Generator) sharesOf(name, arm string, feed rules.Feed) []schemas.FeedShare {
	share := func(source schemas.Source, target float64) schemas.FeedShare {
		return schemas.FeedShare{
			Feed: name, Arm: arm, Source: source, Target: target, Items: g.metrics.countOf(name, arm, string(source)),
		}
	}
	named := slices.Sorted(maps.Keys(feed.Shares))
	list := convert.All(named, func(source schemas.Source) schemas.FeedShare { return share(source, feed.Shares[source]) })
	for _, source := range feed.Fill {
		list = append(list, share(source, 0))
	}
	return append(list, share(otherSources, feed.DefaultShare))
}

// countOf returns the counted items of a source.
func (m measures) countOf(feed, arm, source string) int64 {
	var counted dto.Metric
	if m.items.WithLabelValues(feed, arm, source).Write(&counted) != nil { // a counter can always be written
		return 0
	}
	return int64(counted.GetCounter().GetValue())
}
