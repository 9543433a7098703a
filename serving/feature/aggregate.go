package feature

import (
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// plan evaluates definitions over one scan of a user's actions, newest first, in the widest of their windows.
type plan struct {
	features []planned
	widest   stretch
	seen     int
}

// planned is one definition of a plan with what has been gathered for it.
type planned struct {
	def    Definition
	window stretch
	into   aggregate
	cap    bool // actions of its window were not looked at
}

// aggregate gathers the rows of one definition that pass its filter.
type aggregate interface {
	add(r *row)
	result() Result
}

func newPlan(defs []Definition, span Span, maxGroups int) *plan {
	p := &plan{features: make([]planned, len(defs))}
	for i, d := range defs {
		w := span.stretch(d.Window)
		if i == 0 || w.after < p.widest.after {
			p.widest = w
		}
		p.features[i] = planned{def: d, window: w, into: newAggregate(d, w.upTo, maxGroups)}
	}
	return p
}

// add gives the next row to every definition whose window holds it.
func (p *plan) add(r *row) {
	p.seen++
	for i := range p.features {
		f := &p.features[i]
		if f.window.holds(r.time) && f.def.passes(r) {
			f.into.add(r)
		}
	}
}

// stopAt says that the rows from t on, into the past, are not looked at.
func (p *plan) stopAt(t millis) {
	for i := range p.features {
		if f := &p.features[i]; f.window.after < t {
			f.cap = true
		}
	}
}

func (p *plan) results() []Result {
	out := make([]Result, len(p.features))
	for i, f := range p.features {
		res := f.into.result()
		if f.window.cut {
			res.Reasons = append(res.Reasons, Window)
		}
		if f.cap && !slices.Contains(res.Reasons, Cap) {
			res.Reasons = append(res.Reasons, Cap)
		}
		out[i] = res
	}
	return out
}

func (d *Definition) passes(r *row) bool {
	if len(d.Verbs) > 0 && !slices.Contains(d.Verbs, schemas.Verb(r.verb)) {
		return false
	}
	for i := range d.Where {
		if !d.Where[i].holds(r) {
			return false
		}
	}
	return true
}

func (c *Condition) holds(r *row) bool {
	for _, v := range r.values(c.Path) {
		if slices.Contains(c.In, v) {
			return true
		}
	}
	return false
}

// newAggregate gathers for a definition that is no ratio, with windows that end at asOf.
func newAggregate(d Definition, asOf millis, maxGroups int) aggregate {
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

// tally is what any scalar aggregate needs to know of its rows.
type tally struct {
	rows          int
	asOf          millis // as of when rows are weighed
	weight        float64
	sum, min, max float64
	distinct      map[string]struct{}
	many          *schemas.Union // instead of distinct, beyond ExactDistinct
}

// measure is what one row brings: nothing, a number or values.
type measure struct {
	number float64
	values []string
}

// measure returns what a row brings to a scalar aggregate, until the next one; false if the row is skipped.
func (d *Definition) measure(r *row) (measure, bool) {
	rule, _ := d.Aggregate.rule()
	switch rule.of {
	case numbersAt:
		values := r.values(d.Of)
		if len(values) == 0 {
			return measure{}, false
		}
		x, ok := number(values[0])
		return measure{number: x}, ok
	case valuesAt:
		values := r.values(d.Of)
		return measure{values: values}, len(values) > 0
	}
	return measure{}, true
}

// add adds a row of a time, no earlier one than those after it; asOf is where the window ends.
func (t *tally) add(d *Definition, m measure, at, asOf millis) {
	if t.rows == 0 {
		t.min, t.max, t.asOf = m.number, m.number, asOf
		if d.Aggregate.isMean() {
			t.asOf = at
		}
	}
	w := d.weight(t.asOf - at)
	t.rows++
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
	if t.rows == 0 && !d.Aggregate.zeroWhenEmpty() {
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

// scalar is count, rate, sum, mean, min, max or distinct without grouping.
type scalar struct {
	def   Definition
	asOf  millis
	tally tally
}

func (s *scalar) add(r *row) {
	if m, ok := s.def.measure(r); ok {
		s.tally.add(&s.def, m, r.time, s.asOf)
	}
}

func (s *scalar) result() Result { return s.tally.result(&s.def) }

// grouped is a scalar aggregate for each group. It opens at most max groups: the newest.
type grouped struct {
	def     Definition
	asOf    millis
	tallies map[string]*tally
	max     int
	capped  bool
	groups  []string
}

func (g *grouped) add(r *row) {
	g.groups = append(g.groups[:0], r.values(g.def.GroupBy)...) // measure reads the row again
	if len(g.groups) == 0 {
		return
	}
	m, ok := g.def.measure(r)
	if !ok {
		return
	}
	for _, name := range g.groups {
		if t := g.tally(name); t != nil {
			t.add(&g.def, m, r.time, g.asOf)
		}
	}
}

// tally returns the group's, nil for a new one beyond the cap.
func (g *grouped) tally(name string) *tally {
	t := g.tallies[name]
	if t == nil && len(g.tallies) >= g.max {
		g.capped = true
		return nil
	}
	if t == nil {
		t = &tally{}
		g.tallies[name] = t
	}
	return t
}

func (g *grouped) result() Result {
	groups, res := make(Groups, len(g.tallies)), Result{}
	for name, t := range g.tallies {
		if n, ok := t.result(&g.def).Value.(Number); ok {
			groups[name] = float64(n)
		}
	}
	if len(groups) < len(g.tallies) { // a group has something measured: only overflow leaves it without a value
		res.Reasons = append(res.Reasons, Overflow)
	}
	if g.capped {
		res.Reasons = append(res.Reasons, Cap)
	}
	res.Value = groups
	return res
}

// lastActions is last.
type lastActions struct {
	n    int
	last Last
}

func (l *lastActions) add(r *row) {
	if len(l.last) < l.n {
		l.last = append(l.last, Acted{Object: schemas.ID(r.object), Verb: schemas.Verb(r.verb), Timestamp: r.time.time()})
	}
}

func (l *lastActions) result() Result { return Result{Value: l.last} }

// topValues is top. It counts at most max values: the newest.
type topValues struct {
	of     Path
	n, max int
	counts map[string]int64
	capped bool
}

func (t *topValues) add(r *row) {
	for _, v := range r.values(t.of) {
		if _, ok := t.counts[v]; !ok && len(t.counts) >= t.max {
			t.capped = true
			continue
		}
		t.counts[v]++
	}
}

func (t *topValues) result() Result {
	res := Result{Value: topOf(t.counts, t.n)}
	if t.capped {
		res.Reasons = []Reason{Cap}
	}
	return res
}

// meanVector is mean_embedding, and what cosine compares with.
type meanVector struct {
	def    Definition
	sum    Vector
	newest millis // time of the first that was added, as of which the others are weighed
	weight float64
}

func (m *meanVector) add(r *row) {
	v := r.vector(m.def.Of)
	if m.sum == nil && v != "" {
		m.sum, m.newest = make(Vector, len(v)/4), r.time
	}
	if v == "" || len(v) != 4*len(m.sum) {
		return
	}
	w := m.def.weight(m.newest - r.time)
	m.weight += w
	for i := range m.sum {
		m.sum[i] += element(v, i) * w
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
