package feature

import (
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

// ItemEvaluation evaluates definitions of entity pin over the steps of a pin, for one pin after another.
type ItemEvaluation struct {
	now      millis
	counts   bool // a definition reads steps
	means    bool // a definition is the mean of recent actors
	features []evaluatedItem
	mean     []float32 // mean of the present pin's recent actors; empty: none
}

// evaluatedItem is a definition with its numbers for the present pin.
type evaluatedItem struct {
	numbers
	after millis // the last millisecond before the window
}

// NewItemEvaluation returns an evaluation as of now.
func NewItemEvaluation(defs []Definition, now schemas.Micros) *ItemEvaluation {
	e := &ItemEvaluation{now: floor(now), features: make([]evaluatedItem, len(defs))}
	for i := range defs {
		d := &defs[i]
		f := evaluatedItem{numbers: *newNumbers(d, e.now, math.MaxInt), after: e.now - durationMillis(d.Window)}
		if d.Aggregate == CountDistinct {
			f.all[0].many = &schemas.Union{} // actors come as sketches
		}
		e.features[i] = f
		e.means = e.means || d.Aggregate == MeanEmbedding
		e.counts = e.counts || d.Aggregate != MeanEmbedding
	}
	return e
}

// begin resets the evaluation for the next pin.
func (e *ItemEvaluation) begin() {
	e.mean = nil
	for i := range e.features {
		f := &e.features[i]
		switch {
		case f.groups != nil:
			clear(f.groups)
			f.all = f.all[:0]
		case f.all[0].many != nil:
			*f.all[0].many = schemas.Union{}
		default:
			f.all[0].weight = 0
		}
	}
}

// first returns the earliest start of a step within the widest window.
func (e *ItemEvaluation) first() millis {
	first := e.now
	for i := range e.features {
		first = min(first, e.features[i].after+1-(stepMillis-1))
	}
	return first
}

// Wanted returns the range of the starts of the steps that Evaluate needs, in milliseconds: from ≤ start ≤ upTo. actors
// reports whether it needs their sketches. Without such steps, from is after upTo.
func (e *ItemEvaluation) Wanted() (from, upTo int64, actors bool) {
	if !e.counts {
		return 1, 0, false
	}
	for _, f := range e.features {
		actors = actors || f.def.Aggregate == CountDistinct
	}
	return int64(e.first()), int64(e.now), actors
}

// Means reports whether a definition is the mean of recent actors, which Evaluate takes from the last counts that have one.
func (e *ItemEvaluation) Means() bool { return e.means }

// Evaluate returns the results of a pin. counts has each step at most once.
func (e *ItemEvaluation) Evaluate(counts []schemas.ItemCounts) []Result {
	e.begin()
	for _, c := range counts {
		if len(c.Embedding) > 0 {
			e.mean = c.Embedding
		}
		e.addStep(floor(c.Start), positive(c.Counts), c.Actors)
	}
	return e.results()
}

// addStep adds a step to every definition whose window contains a part of it.
func (e *ItemEvaluation) addStep(start millis, counts []verbCount, actors schemas.Sketch) {
	for i := range e.features {
		f := &e.features[i]
		switch {
		case start > e.now || f.after >= start+stepMillis-1 || f.def.Aggregate == MeanEmbedding:
		case f.def.Aggregate == CountDistinct:
			f.all[0].many.Merge(actors)
		default:
			f.addCounts(counts, f.def.weight(e.now-start))
		}
	}
}

func (f *evaluatedItem) addCounts(counts []verbCount, weight float64) {
	for _, c := range counts {
		if !f.def.countsItem(schemas.Verb(c.verb)) {
			continue
		}
		if f.groups == nil {
			f.all[0].weight += float64(c.n) * weight
		} else {
			t := f.group(c.verb)
			t.weight += float64(c.n) * weight
			t.actions += int(c.n)
		}
	}
}

// results returns the results of the present pin.
func (e *ItemEvaluation) results() []Result {
	mean := meanVector{}
	mean.addWeighed(e.mean, 1)
	out := make([]Result, len(e.features))
	for i := range e.features {
		if f := &e.features[i]; f.def.Aggregate == MeanEmbedding {
			out[i] = mean.result()
		} else {
			out[i] = f.result()
		}
	}
	return out
}
