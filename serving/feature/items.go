package feature

import (
	"github.com/smartfeed/smartfeed/schemas"
)

// itemPlan evaluates definitions of entity pin over one scan of a pin's steps.
type itemPlan struct {
	now      millis
	features []plannedItem
}

type plannedItem struct {
	def    Definition
	after  millis // the last millisecond before the window
	total  float64
	groups map[string]float64
}

func newItemPlan(defs []Definition, now millis) *itemPlan {
	p := &itemPlan{now: now, features: make([]plannedItem, len(defs))}
	for i, d := range defs {
		p.features[i] = plannedItem{def: d, after: now - durationMillis(d.Window), groups: map[string]float64{}}
	}
	return p
}

// first returns the earliest start of a step that the widest window reaches into.
func (p *itemPlan) first() millis {
	first := p.now
	for i := range p.features {
		first = min(first, p.features[i].after+1-(stepMillis-1))
	}
	return first
}

// add gives the counts of the step that begins at start to every definition whose window reaches into it.
func (p *itemPlan) add(start millis, counts string) error {
	if start > p.now {
		return nil
	}
	for counts != "" {
		verb, n, rest, ok := cutCount(counts)
		if !ok {
			return errCorrupt
		}
		for i := range p.features {
			if f := &p.features[i]; f.after < start+stepMillis-1 {
				f.add(verb, n)
			}
		}
		counts = rest
	}
	return nil
}

func (f *plannedItem) add(verb string, n uint64) {
	if !f.def.countsItem(schemas.Verb(verb)) {
		return
	}
	f.total += float64(n)
	if !f.def.GroupBy.isZero() {
		f.groups[verb] += float64(n)
	}
}

func (p *itemPlan) results() []Result {
	out := make([]Result, len(p.features))
	for i, f := range p.features {
		if f.def.GroupBy.isZero() {
			out[i] = Result{Value: Number(f.def.scale(f.total))}
			continue
		}
		for verb, n := range f.groups {
			f.groups[verb] = f.def.scale(n)
		}
		out[i] = Result{Value: Groups(f.groups)}
	}
	return out
}
