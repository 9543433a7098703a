package feature

import (
	"errors"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Evaluation evaluates definitions of entity user or pair in one pass over a user's actions, newest first, and by id
// descending within a millisecond. The definitions must be self-contained; a Service requests no others. The store
// enforces Config.MaxActions and calls StopAt where it stops.
type Evaluation struct {
	features  []*evaluated // in the order of the definitions
	windowed  []*evaluated
	sequences []*evaluated
	widest    stretch     // of the windows
	reads     reads       // of actions
	seen      int         // actions
	last      millis      // time of the last action
	input     actionInput // reused
}

// evaluated is a definition and its aggregate.
type evaluated struct {
	def    *Definition
	window stretch
	into   aggregate
	capped bool // some actions of its window were not read
}

// reads says what definitions read of actions besides the fields of every query: time, verb and object.
type reads struct {
	parts uint32             // a bit for each part
	keys  [numParts][]string // of the attributes that are read, by part
}

func (r *reads) add(p Path) {
	r.parts |= 1 << p.part
	if p.isFree() && !slices.Contains(r.keys[p.part], p.key) {
		r.keys[p.part] = append(r.keys[p.part], p.key)
	}
}

func (r *reads) has(p part) bool { return r.parts&(1<<p) != 0 }

// NewEvaluation returns an evaluation for one user. A value has at most maxGroups groups.
func NewEvaluation(span Span, defs []Definition, maxGroups int) *Evaluation {
	e := &Evaluation{widest: stretch{after: floor(span.AsOf), upTo: floor(span.AsOf)}}
	for i := range defs {
		f := &evaluated{def: &defs[i], window: span.stretch(defs[i].Window), into: newAggregate(&defs[i], floor(span.AsOf), maxGroups)}
		for _, p := range defs[i].Paths() {
			e.reads.add(p)
		}
		e.features = append(e.features, f)
		if f.def.Aggregate == TakeSequence {
			f.window = stretch{after: math.MinInt64, upTo: f.window.upTo}
			e.sequences = append(e.sequences, f)
			continue
		}
		e.windowed = append(e.windowed, f)
		e.widest.after = min(e.widest.after, f.window.after)
	}
	return e
}

// Wanted returns the time range of the actions to pass to Add, in milliseconds: after < t ≤ upTo. It is empty if after is
// not before upTo.
func (e *Evaluation) Wanted() (after, upTo int64) { return int64(e.widest.after), int64(e.widest.upTo) }

var errOrder = errors.New("actions do not come newest first")

// Add adds the next action to every definition whose window contains it. It keeps only texts of the action. It returns
// an error if the action is newer than the previous one.
func (e *Evaluation) Add(a *schemas.EnrichedAction) error {
	t := floor(a.Timestamp)
	if e.seen > 0 && t > e.last {
		return errOrder
	}
	e.seen, e.last = e.seen+1, t
	e.input.EnrichedAction, e.input.at = a, t
	for _, f := range e.windowed {
		if f.window.holds(t) && e.input.passes(f.def) {
			f.into.add(&e.input)
		}
	}
	return nil
}

// StopAt records that actions at this time or earlier may not have been passed to Add. Definitions that need them get
// the reason Cap.
func (e *Evaluation) StopAt(from schemas.Micros) {
	for _, f := range e.windowed {
		f.capped = f.capped || f.window.after < floor(from)
	}
}

// Results returns the results in the order of the definitions.
func (e *Evaluation) Results() []Result {
	out := make([]Result, len(e.features))
	for i, f := range e.features {
		res := f.into.result()
		if f.window.cut {
			res.Reasons = append(res.Reasons, Window)
		}
		if f.capped && !slices.Contains(res.Reasons, Cap) {
			res.Reasons = append(res.Reasons, Cap)
		}
		out[i] = res
	}
	return out
}

// actionInput is an action that is added to aggregates.
type actionInput struct {
	*schemas.EnrichedAction
	at     millis
	values []string // buffer
	groups []string // buffer
	keys   []string // buffer of appendCombinations
}

// passes reports whether the action has a verb of the definition and meets its conditions.
func (in *actionInput) passes(d *Definition) bool {
	if len(d.Verbs) > 0 && !slices.Contains(d.Verbs, in.Verb) {
		return false
	}
	for i := range d.Where {
		c := &d.Where[i]
		in.values = c.Path.appendValues(in.values[:0], in.EnrichedAction)
		if !slices.ContainsFunc(in.values, func(v string) bool { return slices.Contains(c.In, v) }) {
			return false
		}
	}
	return true
}
