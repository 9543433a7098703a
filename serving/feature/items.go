package feature

import (
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// itemEvaluation evaluates definitions of entity pin over the steps of a pin, for one pin after another.
type itemEvaluation struct {
	now      millis
	counts   bool // a definition reads steps
	means    bool // a definition is the mean of recent actors
	features []evaluatedItem
	mean     []float32 // mean of the present pin's recent actors; empty: none
}

type evaluatedItem struct {
	def    *Definition
	after  millis         // the last millisecond before the window
	total  float64        // of the present pin, if there is no grouping
	groups []verbTotal    // of the present pin; so few that a linear search is faster than a map
	actors *schemas.Union // of the present pin; nil if the definition does not count actors
}

type verbTotal struct {
	verb string
	n    float64
}

func newItemEvaluation(defs []Definition, now millis) *itemEvaluation {
	e := &itemEvaluation{now: now, features: make([]evaluatedItem, len(defs))}
	for i := range defs {
		d := &defs[i]
		e.features[i] = evaluatedItem{def: d, after: now - durationMillis(d.Window)}
		if d.Aggregate == CountDistinct {
			e.features[i].actors = &schemas.Union{}
		}
		e.means = e.means || d.Aggregate == MeanEmbedding
		e.counts = e.counts || d.Aggregate != MeanEmbedding
	}
	return e
}

// begin resets the evaluation for the next pin.
func (e *itemEvaluation) begin() {
	e.mean = nil
	for i := range e.features {
		f := &e.features[i]
		f.total, f.groups = 0, f.groups[:0]
		if f.actors != nil {
			*f.actors = schemas.Union{}
		}
	}
}

// first returns the earliest start of a step within the widest window.
func (e *itemEvaluation) first() millis {
	first := e.now
	for i := range e.features {
		first = min(first, e.features[i].after+1-(stepMillis-1))
	}
	return first
}

// addStep adds a step to every definition whose window contains a part of it.
func (e *itemEvaluation) addStep(start millis, counts []verbCount, actors schemas.Sketch) {
	for i := range e.features {
		f := &e.features[i]
		if start > e.now || f.after >= start+stepMillis-1 || f.def.Aggregate == MeanEmbedding {
			continue
		}
		if f.actors != nil {
			f.actors.Merge(actors)
			continue
		}
		weight := f.def.weight(e.now - start)
		for _, c := range counts {
			if f.def.countsItem(schemas.Verb(c.verb)) {
				f.add(c.verb, float64(c.n)*weight)
			}
		}
	}
}

func (f *evaluatedItem) add(verb string, n float64) {
	f.total += n
	if f.def.GroupBy.isZero() {
		return
	}
	i := slices.IndexFunc(f.groups, func(t verbTotal) bool { return t.verb == verb })
	if i < 0 {
		i = len(f.groups)
		f.groups = append(f.groups, verbTotal{verb: verb})
	}
	f.groups[i].n += n
}

// results returns the results of the present pin.
func (e *itemEvaluation) results() []Result {
	out := make([]Result, len(e.features))
	for i := range e.features {
		out[i] = e.features[i].result(e.mean)
	}
	return out
}

func (f *evaluatedItem) result(mean []float32) Result {
	switch {
	case f.def.Aggregate == MeanEmbedding:
		return vectorOf(mean)
	case f.actors != nil:
		return Result{Value: Number(math.Round(f.actors.Estimate()))}
	case f.def.GroupBy.isZero():
		return Result{Value: Number(f.def.scale(f.total))}
	}
	groups := make(Groups, len(f.groups))
	for _, t := range f.groups {
		groups[t.verb] = f.def.scale(t.n)
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
