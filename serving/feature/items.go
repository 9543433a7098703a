package feature

import (
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

// itemPlan evaluates definitions of entity pin over the days of a pin, for one pin after another.
type itemPlan struct {
	now      millis
	counts   bool // a definition reads steps
	means    bool // a definition is the mean of recent actors
	features []plannedItem
	mean     []float32 // mean of the present pin's recent actors; empty: none
}

type plannedItem struct {
	def     *Definition
	after   millis         // the last millisecond before the window
	weights []float64      // weight of a step by its age in steps; NaN: not computed yet
	total   float64        // of the present pin, if there is no grouping
	groups  []verbCount    // of the present pin; so few that a linear search is faster than a map
	actors  *schemas.Union // of the present pin; nil if the definition does not count actors
	reached bool           // the window contains the present step
}

// verbCount is the weighted count of a verb.
type verbCount struct {
	verb string
	n    float64
}

func newItemPlan(defs []Definition, now millis) *itemPlan {
	p := &itemPlan{now: now, features: make([]plannedItem, len(defs))}
	for i := range defs {
		d := &defs[i]
		f := plannedItem{def: d, after: now - durationMillis(d.Window)}
		switch d.Aggregate {
		case MeanEmbedding:
			p.means, f.after = true, now
		case CountDistinct:
			p.counts, f.actors = true, &schemas.Union{}
		default:
			p.counts = true
		}
		p.features[i] = f
	}
	return p
}

// begin resets the plan for the next pin.
func (p *itemPlan) begin() {
	p.mean = nil
	for i := range p.features {
		f := &p.features[i]
		f.total, f.groups = 0, f.groups[:0]
		if f.actors != nil {
			*f.actors = schemas.Union{}
		}
	}
}

// first returns the earliest start of a step within the widest window.
func (p *itemPlan) first() millis {
	first := p.now
	for i := range p.features {
		first = min(first, p.features[i].after+1-(stepMillis-1))
	}
	return first
}

// addDay adds each step of a day to every definition whose window contains it.
func (p *itemPlan) addDay(number int32, row string) error {
	for row != "" {
		s, rest, ok := cutStep(row)
		if !ok {
			return errCorrupt
		}
		start := millis(number)*dayMillis + millis(s.number)*stepMillis
		if start > p.now {
			return nil
		}
		if err := p.addStep(start, s); err != nil {
			return err
		}
		row = rest
	}
	return nil
}

func (p *itemPlan) addStep(start millis, s step) error {
	for i := range p.features {
		f := &p.features[i]
		f.reached = f.after < start+stepMillis-1
		if f.reached && f.actors != nil {
			f.actors.Merge(schemas.Sketch(s.actors))
		}
	}
	for counts := s.counts; counts != ""; {
		verb, n, rest, ok := cutCount(counts)
		if !ok {
			return errCorrupt
		}
		counts = rest
		for i := range p.features {
			if f := &p.features[i]; f.reached {
				f.add(verb, float64(n), p.now-start)
			}
		}
	}
	return nil
}

// weight returns the weight of a step of the given age. All steps start at multiples of their length, so all pins share
// the same ages.
func (f *plannedItem) weight(age millis) float64 {
	if f.def.HalfLife == 0 {
		return 1
	}
	i := int(age / stepMillis)
	for len(f.weights) <= i {
		f.weights = append(f.weights, math.NaN())
	}
	if math.IsNaN(f.weights[i]) {
		f.weights[i] = f.def.weight(age)
	}
	return f.weights[i]
}

func (f *plannedItem) add(verb string, n float64, age millis) {
	if !f.def.countsItem(schemas.Verb(verb)) {
		return
	}
	n *= f.weight(age)
	if f.def.GroupBy.isZero() {
		f.total += n
		return
	}
	for i := range f.groups {
		if g := &f.groups[i]; g.verb == verb {
			g.n += n
			return
		}
	}
	f.groups = append(f.groups, verbCount{verb, n})
}

// results returns the results of the present pin.
func (p *itemPlan) results() []Result {
	out := make([]Result, len(p.features))
	for i := range p.features {
		out[i] = p.features[i].result(p.mean)
	}
	return out
}

func (f *plannedItem) result(mean []float32) Result {
	switch {
	case f.def.Aggregate == MeanEmbedding:
		return vectorOf(mean)
	case f.actors != nil:
		return Result{Value: Number(math.Round(f.actors.Estimate()))}
	case f.def.GroupBy.isZero():
		return Result{Value: Number(f.def.scale(f.total))}
	}
	groups := make(Groups, len(f.groups))
	for _, g := range f.groups {
		groups[g.verb] = f.def.scale(g.n)
	}
	return Result{Value: groups}
}

// vectorOf returns an embedding as a value.
func vectorOf(embedding []float32) Result {
	if len(embedding) == 0 {
		return absent(Empty)
	}
	v := make(Vector, len(embedding))
	for i, x := range embedding {
		if v[i] = float64(x); !finite(v[i]) {
			return absent(Overflow)
		}
	}
	return Result{Value: v}
}
