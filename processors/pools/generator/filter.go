package generator

import (
	"context"
	"errors"
	"slices"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// filter reads the best candidates of each source that the user may be shown: from the user's rows, the pulled pins and the
// offers.
func (g *Generator) filter(c *composition, v *view) error {
	list, err := v.sources(c.offers)
	if err != nil {
		return err
	}
	c.pools = c.pools[:0:0]
	for _, source := range list {
		best, err := v.best(source, g.cfg.Head)
		if err == nil && len(c.offers[source]) > 0 {
			best, err = v.mergeOffered(source, best, c.offers[source], g.cfg.Head)
		}
		if err != nil {
			return err
		}
		c.pools = append(c.pools, rules.Pool{Source: source, Candidates: candidatesOf(best)})
	}
	return nil
}

// filterRecent is like filter, but of the seen pins leaves out only those that were shown recently. These are nearly all seen
// pins that the pools still contain, because trims remove the others. The caller must look up the pins that it shows.
func (g *Generator) filterRecent(c *composition, v *view) error {
	if err := v.LoadRecentlySeen(g.pools.Frozen); err != nil {
		return err
	}
	return g.filter(c, v)
}

// filterExactly repeats filter, and leaves out all seen pins.
func (g *Generator) filterExactly(ctx context.Context, c *composition) error {
	return g.read(ctx, c.User, func(v *view, _ rows.Snapshot) error { return g.filter(c, v) })
}

// sources returns the sources of which the user has or had candidates, including pulled and offered ones, by name.
func (v *view) sources(offers map[schemas.Source][]layout.Candidate) ([]schemas.Source, error) {
	list, err := layout.Sources(v)
	if v.pulled != nil {
		list = v.pulled.sources(v.Viewer.Follows, list)
	}
	for source := range offers {
		list = append(list, source)
	}
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
	next := it.Take
	if v.pulled != nil {
		merged, done := v.pulled.merge(it, v.Viewer.Follows)
		defer done()
		next = merged.next
	}
	best, err = v.Best(source, v.Buffers.Chosen[:0], next, n)
	return best, errors.Join(err, it.Err)
}

// mergeOffered adds the offered candidates of a source that the user may be shown to its best ones, and returns the n best.
func (v *view) mergeOffered(source schemas.Source, best, offered []layout.Candidate, n int) ([]layout.Candidate, error) {
	i := 0
	shown, err := v.Best(source, nil, func() *layout.Candidate {
		if i == len(offered) {
			return nil
		}
		i++
		return &offered[i-1]
	}, len(offered))
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
		again := taken[c.Pin]
		taken[c.Pin] = true
		return again
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
