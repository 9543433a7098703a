package generator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
)

// Reasons why a chunk is degraded.
const (
	degradedReactivating = "reactivating" // some followees have not yet delivered the backfill for a reactivated user
	degradedAffinities   = "affinities"   // the affinities of the user cannot be read
	degradedPulled       = "pulled"       // the pins of pulled followees are not loaded yet
	degradedItems        = "items"        // the counts of impressions and saves are not loaded yet
	degradedModel        = "model"        // the external model did not answer
	degradedSource       = "source:"      // prefix of the name of an external source that did not answer
)

// gatherOffers requests candidates from all external sources that have a share in the feed, in parallel.
func (g *Generator) gatherOffers(ctx context.Context, c *composition) {
	c.offers = map[schemas.Source][]layout.Candidate{}
	var mu sync.Mutex
	var requests sync.WaitGroup
	for _, s := range g.external.sources {
		if c.rules.Share(s.Name) == 0 {
			continue
		}
		requests.Go(func() {
			list, err := s.request(ctx, c.User, c.Feed)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				c.degrade(degradedSource + string(s.Name))
				return
			}
			c.offers[s.Name] = list
		})
	}
	requests.Wait()
	slices.Sort(c.degraded)
}

// backfillDeadline returns until when a chunk waits for backfills. It leaves a quarter of the time that ctx has left to the
// other stages.
func (g *Generator) backfillDeadline(ctx context.Context) time.Time {
	wait := g.cfg.ReactivationTimeout
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)*3/4)
	}
	return g.deps.Now().Add(wait)
}

// gatherActivity reads whether the user is inactive. It returns false while a reactivated user's backfills are outstanding,
// until the deadline.
func (g *Generator) gatherActivity(c *composition, v *view, deadline time.Time) (complete bool, err error) {
	a, found, err := layout.ReadActivity(v)
	if err != nil {
		return false, err
	}
	if !found {
		a.LastSeen = c.Time
	}
	if a.Inactive && !c.Announced {
		c.inactive, c.head = true, v.State.Head
		return true, nil
	}
	if a.Inactive || a.IsBackfilling() {
		if g.deps.Now().Before(deadline) {
			return false, nil
		}
		c.degrade(degradedReactivating)
	}
	// With InactiveAfter 0, visits are not recorded. Only the visit of a user who is already inactive must be announced.
	c.announce = g.pools.InactiveAfter > 0 && c.Time.Time().Sub(a.LastSeen.Time()) > g.pools.InactiveAfter/30
	return true, nil
}

// gather reads what the rules of the feed need of the user, except the candidates.
func (g *Generator) gather(c *composition, v *view) error {
	c.memory, c.head, c.graph = v.State.Memory, v.State.Head, v.Viewer.Graph
	if !g.pulledLoaded() {
		c.degrade(degradedPulled)
	}
	if c.rules.Affinity > 0 {
		if err := g.gatherAffinities(c, v); err != nil {
			return err
		}
	}
	if c.rules.Popularity > 0 || c.rules.Shares[schemas.Explore] > 0 {
		if g.deps.Hot == nil || !g.deps.Hot.Ready() {
			c.degrade(degradedItems)
		} else {
			c.signals.Counts = g.deps.Hot
		}
	}
	return nil
}

// gatherAffinities reads the affinities of the user.
func (g *Generator) gatherAffinities(c *composition, v *view) error {
	value, err := v.Get([]byte{layout.KindAffinities})
	if err != nil || value == nil {
		return err
	}
	a, err := g.deps.Streams.Affinities.Decode(value)
	if err != nil { // the record has another schema version, and the registry is unavailable
		c.degrade(degradedAffinities)
		return nil
	}
	c.signals.Affinities = a.Top
	return nil
}
