package feature

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Evaluation evaluates definitions of entity user or pair in one pass over a user's actions, newest first, and by id
// descending within a millisecond. The definitions must be self-contained; a Service requests no others. The store
// enforces Config.MaxActions and calls StopAt where it stops.
type Evaluation struct {
	features []evaluated
	widest   stretch // of the windows
	reads    partSet // of actions
	seen     int     // actions
	last     millis  // time of the last action
}

// evaluated is a definition and its aggregate.
type evaluated struct {
	def    *Definition
	window stretch
	into   aggregate
	capped bool // some actions of its window were not read
}

// aggregate accumulates the actions of a definition that pass its filter.
type aggregate interface {
	add(a *schemas.EnrichedAction)
	result() Result
}

// NewEvaluation returns an evaluation for one user. A value has at most maxGroups groups.
func NewEvaluation(span Span, defs []Definition, maxGroups int) *Evaluation {
	e := &Evaluation{features: make([]evaluated, len(defs))}
	for i := range defs {
		d := &defs[i]
		w := span.stretch(d.Window)
		if i == 0 || w.after < e.widest.after {
			e.widest = w
		}
		for _, p := range d.Paths() {
			e.reads |= 1 << p.part
		}
		e.features[i] = evaluated{def: d, window: w, into: newAggregate(d, w.upTo, maxGroups)}
	}
	return e
}

// Wanted returns the time range of the actions to pass, in milliseconds: after < t ≤ upTo.
func (e *Evaluation) Wanted() (after, upTo int64) { return int64(e.widest.after), int64(e.widest.upTo) }

var errOrder = errors.New("actions do not come newest first")

// Add adds the next action to every definition whose window contains it. It returns an error if the action is newer than
// the previous one.
func (e *Evaluation) Add(a *schemas.EnrichedAction) error {
	t := floor(a.Timestamp)
	if e.seen > 0 && t > e.last {
		return errOrder
	}
	e.seen, e.last = e.seen+1, t
	for i := range e.features {
		f := &e.features[i]
		if f.window.holds(t) && f.def.passes(a) {
			f.into.add(a)
		}
	}
	return nil
}

// StopAt records that actions at this time or earlier may not have been passed to Add. Definitions that need them get
// the reason Cap.
func (e *Evaluation) StopAt(from schemas.Micros) {
	for i := range e.features {
		if f := &e.features[i]; f.window.after < floor(from) {
			f.capped = true
		}
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

// fewValues is how many values of an action most definitions read. They need no allocation.
const fewValues = 8

func (d *Definition) passes(a *schemas.EnrichedAction) bool {
	if len(d.Verbs) > 0 && !slices.Contains(d.Verbs, a.Verb) {
		return false
	}
	var buf [fewValues]string
	for _, c := range d.Where {
		if !slices.ContainsFunc(c.Path.appendValues(buf[:0], a), func(v string) bool { return slices.Contains(c.In, v) }) {
			return false
		}
	}
	return true
}

// newAggregate returns the aggregate of a definition other than a ratio, for windows that end at asOf.
func newAggregate(d *Definition, asOf millis, maxGroups int) aggregate {
	switch d.Aggregate {
	case TakeLast:
		return &lastActions{n: d.N, last: make(Last, 0, d.N)}
	case TakeTop:
		return &topValues{of: d.Of, n: d.N, counts: map[string]int64{}, max: maxGroups}
	case MeanEmbedding, Cosine:
		return &meanVector{def: d}
	}
	if d.GroupBy.isZero() {
		return &scalar{def: d, asOf: asOf}
	}
	return &grouped{def: d, asOf: asOf, tallies: map[string]*tally{}, max: maxGroups}
}

// tally holds the running totals of all scalar aggregates.
type tally struct {
	actions       int
	asOf          millis // time as of which actions are weighed
	weight        float64
	sum, min, max float64
	distinct      map[string]struct{}
	many          *schemas.Union // replaces distinct above ExactDistinct
}

// measure is the contribution of one action: nothing, a number, or values.
type measure struct {
	number float64
	values []string
}

// measure returns the contribution of an action to a scalar aggregate, with its values in buf. It returns false if the
// action is skipped.
func (d *Definition) measure(a *schemas.EnrichedAction, buf []string) (measure, bool) {
	rule, _ := d.Aggregate.rule()
	if rule.of == nothing {
		return measure{}, true
	}
	values := d.Of.appendValues(buf[:0], a)
	if len(values) == 0 || rule.of == valuesAt {
		return measure{values: values}, len(values) > 0
	}
	x, ok := number(values[0])
	return measure{number: x}, ok
}

// add adds the measure of an action at a time. Actions come newest first. asOf is the end of the window.
func (t *tally) add(d *Definition, m measure, at, asOf millis) {
	if t.actions == 0 {
		t.min, t.max, t.asOf = m.number, m.number, asOf
		if d.Aggregate.isMean() {
			t.asOf = at
		}
	}
	w := d.weight(t.asOf - at)
	t.actions++
	t.weight += w
	t.sum += m.number * w
	t.min, t.max = min(t.min, m.number), max(t.max, m.number)
	for _, v := range m.values {
		t.addValue(v)
	}
}

func (t *tally) addValue(v string) {
	if t.many != nil {
		t.many.Add(v)
		return
	}
	if t.distinct == nil {
		t.distinct = map[string]struct{}{}
	}
	t.distinct[v] = struct{}{}
	if len(t.distinct) <= ExactDistinct {
		return
	}
	t.many = &schemas.Union{}
	for v := range t.distinct {
		t.many.Add(v)
	}
	t.distinct = nil
}

func (t *tally) different() float64 {
	if t.many != nil {
		return math.Round(t.many.Estimate())
	}
	return float64(len(t.distinct))
}

func (t *tally) result(d *Definition) Result {
	if t.actions == 0 && !d.Aggregate.zeroWhenEmpty() {
		return absent(Empty)
	}
	x := t.value(d)
	if !finite(x) {
		return absent(Overflow)
	}
	return Result{Value: Number(x)}
}

func (t *tally) value(d *Definition) float64 {
	switch d.Aggregate {
	case Sum:
		return t.sum
	case Mean:
		return t.sum / t.weight
	case Min:
		return t.min
	case Max:
		return t.max
	case CountDistinct:
		return t.different()
	}
	return d.scale(t.weight)
}

// scalar implements count, rate, sum, mean, min, max and distinct without grouping.
type scalar struct {
	def   *Definition
	asOf  millis
	tally tally
}

func (s *scalar) add(a *schemas.EnrichedAction) {
	var buf [fewValues]string
	if m, ok := s.def.measure(a, buf[:]); ok {
		s.tally.add(s.def, m, floor(a.Timestamp), s.asOf)
	}
}

func (s *scalar) result() Result { return s.tally.result(s.def) }

// grouped is a scalar aggregate per group. It opens at most max groups, those with the newest actions.
type grouped struct {
	def     *Definition
	asOf    millis
	tallies map[string]*tally
	max     int
	capped  bool
}

func (g *grouped) add(a *schemas.EnrichedAction) {
	var values, groups [fewValues]string
	m, ok := g.def.measure(a, values[:])
	if !ok {
		return
	}
	for _, name := range g.def.GroupBy.appendValues(groups[:0], a) {
		t := g.tallies[name]
		switch {
		case t == nil && len(g.tallies) >= g.max:
			g.capped = true
			continue
		case t == nil:
			t = &tally{}
			g.tallies[name] = t
		}
		t.add(g.def, m, floor(a.Timestamp), g.asOf)
	}
}

func (g *grouped) result() Result {
	groups, res := make(Groups, len(g.tallies)), Result{}
	for name, t := range g.tallies {
		if n, ok := t.result(g.def).Value.(Number); ok {
			groups[name] = float64(n)
		}
	}
	if len(groups) < len(g.tallies) { // every group has at least one measurement, so only an overflow leaves it without a value
		res.Reasons = append(res.Reasons, Overflow)
	}
	if g.capped {
		res.Reasons = append(res.Reasons, Cap)
	}
	res.Value = groups
	return res
}

// lastActions implements last.
type lastActions struct {
	n    int
	last Last
}

func (l *lastActions) add(a *schemas.EnrichedAction) {
	if len(l.last) < l.n {
		l.last = append(l.last, Acted{Object: a.Object, Verb: a.Verb, Timestamp: floor(a.Timestamp).time()})
	}
}

func (l *lastActions) result() Result { return Result{Value: l.last} }

// topValues implements top. It counts at most max values, those of the newest actions.
type topValues struct {
	of     Path
	n, max int
	counts map[string]int64
	capped bool
}

func (t *topValues) add(a *schemas.EnrichedAction) {
	var buf [fewValues]string
	for _, v := range t.of.appendValues(buf[:0], a) {
		if _, known := t.counts[v]; !known && len(t.counts) >= t.max {
			t.capped = true
			continue
		}
		t.counts[v]++
	}
}

func (t *topValues) result() Result {
	top := make(Top, 0, len(t.counts))
	for v, n := range t.counts {
		top = append(top, Counted{Value: v, Count: n})
	}
	slices.SortFunc(top, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	res := Result{Value: slices.Clip(top[:min(len(top), t.n)])}
	if t.capped {
		res.Reasons = []Reason{Cap}
	}
	return res
}

// meanVector implements mean_embedding, and the user's side of cosine.
type meanVector struct {
	def    *Definition
	sum    Vector
	newest millis // time of the first action, as of which the others are weighed
	weight float64
}

func (m *meanVector) add(a *schemas.EnrichedAction) {
	v, at := m.def.Of.vectorOf(a), floor(a.Timestamp)
	if m.sum == nil && len(v) > 0 {
		m.sum, m.newest = make(Vector, len(v)), at
	}
	if len(v) > 0 && len(v) == len(m.sum) {
		m.addWeighed(v, m.def.weight(m.newest-at))
	}
}

// addWeighed adds a vector. All must have the same length.
func (m *meanVector) addWeighed(v []float32, weight float64) {
	if m.sum == nil {
		m.sum = make(Vector, len(v))
	}
	m.weight += weight
	for i, x := range v {
		m.sum[i] += float64(x) * weight
	}
}

func (m *meanVector) result() Result {
	if m.sum == nil {
		return absent(Empty)
	}
	mean := make(Vector, len(m.sum))
	for i, x := range m.sum {
		if mean[i] = x / m.weight; !finite(mean[i]) {
			return absent(Overflow)
		}
	}
	return Result{Value: mean}
}
