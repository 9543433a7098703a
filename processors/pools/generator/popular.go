package generator

import (
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

	mu   sync.RWMutex
	pins []layout.Candidate // best first; replaced by each change
}

// NewPopular returns an empty Popular. Change fills it; it is complete when ready is closed. halfLife is that of the
// engagement with pins, at least a microsecond.
func NewPopular(halfLife time.Duration, ready <-chan struct{}) *Popular {
	return &Popular{readiness: ready, halfLife: halfLife}
}

// Change replaces the pin of a slot. before is nil if the slot was empty, and after is nil if it becomes empty. It is a
// callback for topics.GlobalTable.OnChange.
func (p *Popular) Change(_ string, before, after *schemas.PopularPin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pins := slices.Clone(p.pins) // readers may use the others
	if before != nil {
		c := p.candidate(before)
		pins = slices.DeleteFunc(pins, func(other layout.Candidate) bool { return other.Pin == c.Pin && other.PoolScore == c.PoolScore })
	}
	if after != nil {
		c := p.candidate(after)
		at, _ := slices.BinarySearchFunc(pins, c, compareCandidates)
		pins = slices.Insert(pins, at, c)
	}
	p.pins = pins
}

// candidate returns the candidate of a slot. Its score is the logarithm of the engagement as of 1970, so the order of candidates
// does not change as they decay.
func (p *Popular) candidate(e *schemas.PopularPin) layout.Candidate {
	return layout.Candidate{
		Pin: e.Pin, PoolScore: schemas.PoolScore(decay.SumOf(e.Engagement, e.Time, decay.NewScale(p.halfLife))), Place: layout.NoPlace,
		Content: layout.NewContent(schemas.PinContent{Facets: e.Facets, Created: e.Created}),
	}
}

func compareCandidates(a, b layout.Candidate) int {
	return comparePlaces(a.PoolScore, a.Pin, b.PoolScore, b.Pin)
}

// candidates returns all popular pins, best first. The caller must not modify the list.
func (p *Popular) candidates() []layout.Candidate {
	p.mu.RLock()
	defer p.mu.RUnlock()
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
