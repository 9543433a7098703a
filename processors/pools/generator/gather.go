package generator

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// gather reads what the rules need from the user's rows. It returns false while it must wait, until the deadline, for backfills. If
// the rules need other candidates than those of an earlier call, it reads only these.
func (g *Generator) gather(c *composition, v *view, deadline time.Time) (complete bool, err error) {
	if c.result != nil {
		return true, g.filter(c, v)
	}
	if c.repeated = v.State.AppliedAttempt(c.Attempts); c.repeated {
		c.head, c.graph = v.State.Head, v.Viewer.Graph
		return true, nil
	}
	if complete, err = g.gatherActivity(c, v, deadline); err != nil || !complete || c.inactive {
		return complete, err
	}
	return true, g.gatherAll(c, v)
}

// gatherActivity reads whether the user is inactive. It returns false while a reactivated user's backfills are outstanding,
// until the deadline. A peek does not reactivate the user, so it does not wait for backfills.
func (g *Generator) gatherActivity(c *composition, v *view, deadline time.Time) (complete bool, err error) {
	a, found, err := rows.Value[layout.Activity](v, []byte{layout.KindActivity})
	if err != nil {
		return false, err
	}
	if !found {
		a.LastSeen = c.Time
	}
	if a.Inactive && !c.Announced && !c.Peek {
		c.inactive, c.head = true, v.State.Head
		return true, nil
	}
	if a.Inactive || a.IsBackfilling() {
		if g.deps.Now().Before(deadline) && !(a.Inactive && c.Peek) {
			return false, nil
		}
		c.degrade(degradedReactivating)
	}
	// With InactiveAfter 0, visits are not recorded. Only the visit of a user who is already inactive must be announced.
	c.announce = !c.Peek && g.pools.InactiveAfter > 0 && c.Time.Time().Sub(a.LastSeen.Time()) > g.pools.InactiveAfter/30
	return true, nil
}

// gatherAll reads the signals and the candidates.
func (g *Generator) gatherAll(c *composition, v *view) error {
	if err := g.gatherSignals(c, v); err != nil {
		return err
	}
	return g.filter(c, v)
}

// gatherSignals reads the signals of the user for the rules of the feed, except the candidates.
func (g *Generator) gatherSignals(c *composition, v *view) error {
	c.memory, c.head, c.graph = v.State.Memory, v.State.Head, v.Viewer.Graph
	if !g.deps.Pulled.Ready() {
		c.degrade(degradedPulled)
	}
	if c.rules.UsesAffinities() {
		if err := g.gatherAffinities(c, v); err != nil {
			return err
		}
	}
	if c.rules.PopularityWeight > 0 || c.rules.Shares[schemas.Explore] > 0 {
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
	c.signals.Affinities = *a
	return nil
}

// filter reads the best candidates of each source that the user may be shown, from the user's rows, the pulled pins and the
// offers. Unless c.exact, it omits only those seen pins that were shown recently. These are nearly all seen pins in the pools,
// because trims remove the others.
func (g *Generator) filter(c *composition, v *view) error {
	if !c.exact {
		if err := v.LoadRecentlySeen(g.pools.MaxRecentItems); err != nil {
			return err
		}
	}
	list, err := v.sources(c.offers)
	if err != nil {
		return err
	}
	c.pools = c.pools[:0:0]
	for _, source := range list {
		best, err := v.bestWith(c.offers[source], source, g.cfg.CandidatesPerSource)
		if err != nil {
			return err
		}
		c.pools = append(c.pools, rules.Pool{Source: source, Candidates: candidatesOf(best)})
	}
	return nil
}

// sources returns the sources with current or former candidates of the user, including pulled and offered ones, by name.
func (v *view) sources(offers map[schemas.Source][]layout.Candidate) ([]schemas.Source, error) {
	list, err := layout.Sources(v)
	list = slices.AppendSeq(v.pulled.sources(v.Viewer.Follows, list), maps.Keys(offers))
	slices.Sort(list)
	return slices.Compact(list), err
}

// best returns the n best candidates of a source that the user may be shown. They are valid until the next call.
func (v *view) best(source schemas.Source, n int) (best []layout.Candidate, err error) {
	defer func() { v.Buffers.Chosen = best }()
	it, err := v.Buffers.Iterate(v, source, n)
	if err != nil {
		return nil, err
	}
	merged, done := v.pulled.merge(it, v.Viewer.Follows)
	defer done()
	best, err = v.Best(source, v.Buffers.Chosen[:0], merged.next, n)
	return best, errors.Join(err, it.Err)
}

// bestWith returns the n best candidates of a source that the user may be shown, including those offered, best first.
func (v *view) bestWith(offered []layout.Candidate, source schemas.Source, n int) ([]layout.Candidate, error) {
	best, err := v.best(source, n)
	if err != nil || len(offered) == 0 {
		return best, err
	}
	i := 0
	shown, err := v.Best(source, nil, func() *layout.Candidate {
		if i == len(offered) {
			return nil
		}
		i++
		return &offered[i-1]
	}, n)
	if err != nil {
		return nil, err
	}
	all := bestOfEach(append(best, shown...))
	return all[:min(len(all), n)], nil
}

// bestOfEach sorts candidates, best first, and keeps the best of each pin. It modifies list.
func bestOfEach(list []layout.Candidate) []layout.Candidate {
	slices.SortFunc(list, func(a, b layout.Candidate) int { return comparePlaces(a.PoolScore, a.Pin, b.PoolScore, b.Pin) })
	taken := make(map[schemas.PinID]bool, len(list))
	return slices.DeleteFunc(list, func(c layout.Candidate) bool {
		repeated := taken[c.Pin]
		taken[c.Pin] = true
		return repeated
	})
}

func candidatesOf(all []layout.Candidate) []rules.Candidate {
	list := make([]rules.Candidate, len(all))
	for i := range all {
		c := &all[i]
		list[i] = rules.Candidate{Pin: c.Pin, PoolScore: c.PoolScore, Created: c.Created, Facets: c.Facets}
	}
	return list
}
