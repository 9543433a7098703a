package generator

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
)

// Popular holds the most popular pins of all partitions, from the topic popular-pins, a global table. They are the candidates of
// the source popular, for every user. It is safe for concurrent use.
type Popular struct {
	readiness
	halfLife time.Duration

	mu    sync.Mutex
	slots map[string]*layout.Candidate
	pins  []layout.Candidate // of all slots, best first; nil: a slot has changed since. Readers share it
}

// NewPopular returns an empty Popular. Change fills it; it is complete when ready is closed. halfLife is that of the
// engagement with pins, at least a microsecond.
func NewPopular(halfLife time.Duration, ready <-chan struct{}) *Popular {
	return &Popular{readiness: ready, halfLife: halfLife, slots: map[string]*layout.Candidate{}}
}

// Change replaces the pin of a slot. after is nil if the slot becomes empty. It is a callback for topics.GlobalTable.OnChange.
func (p *Popular) Change(slot string, _, after *schemas.PopularPin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pins = nil // the next reader sorts: there can be many more changes than visits
	if after == nil {
		delete(p.slots, slot)
		return
	}
	c := p.candidate(after)
	p.slots[slot] = &c
}

// candidate returns the candidate of a slot. Its score is the logarithm of the engagement as of 1970, so the order of candidates
// does not change as they decay.
func (p *Popular) candidate(e *schemas.PopularPin) layout.Candidate {
	return layout.Candidate{
		Pin: e.Pin, PoolScore: schemas.PoolScore(decay.SumOf(e.Engagement, e.Time, decay.NewScale(p.halfLife))), Place: layout.NoPlace,
		Content: layout.NewContent(schemas.PinContent{Facets: e.Facets, Created: e.Created}),
	}
}

// candidates returns all popular pins, best first. The caller must not modify the list.
func (p *Popular) candidates() []layout.Candidate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pins == nil {
		sorted := slices.SortedFunc(maps.Values(p.slots), func(a, b *layout.Candidate) int {
			return comparePlaces(a.PoolScore, a.Pin, b.PoolScore, b.Pin)
		})
		for _, c := range sorted {
			p.pins = append(p.pins, *c)
		}
	}
	return p.pins
}

// offerPopular adds the popular pins to the offers of a composition. It reports whether there are any.
func (g *Generator) offerPopular(c *composition) bool {
	if !g.deps.Popular.Ready() {
		c.degrade(degradedPopular)
	}
	list := g.deps.Popular.candidates()
	if len(list) > 0 {
		c.offers[schemas.FromPopular] = list
	}
	return len(list) > 0
}
