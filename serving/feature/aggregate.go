package feature

import (
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// plan evaluates definitions in one scan of a user's actions, newest first, over the widest of their windows.
type plan struct {
	features []planned
	widest   stretch
	seen     int
	texts    arena // copies of row texts that aggregates keep
}

// planned is a definition of a plan and its aggregate.
type planned struct {
	def    *Definition
	window stretch
	into   aggregate
	cap    bool // some actions of its window were not read
}

// aggregate accumulates the rows of a definition that pass its filter.
type aggregate interface {
	add(r *row)
	result() Result
}

func newPlan(defs []Definition, span Span, maxGroups int) *plan {
	p := &plan{features: make([]planned, len(defs)), texts: arena{size: keptBytes}}
	for i := range defs {
		d := &defs[i]
		w := span.stretch(d.Window)
		if i == 0 || w.after < p.widest.after {
			p.widest = w
		}
		p.features[i] = planned{def: d, window: w, into: newAggregate(d, w.upTo, maxGroups, &p.texts)}
	}
	return p
}

// add adds the next row to every definition whose window contains it.
func (p *plan) add(r *row) {
	p.seen++
	for i := range p.features {
		f := &p.features[i]
		if f.window.holds(r.time) && f.def.passes(r) {
			f.into.add(r)
		}
	}
}

// stopAt records that the scan ends before the rows at t and earlier.
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
	if len(d.Verbs) > 0 && !slices.ContainsFunc(d.Verbs, func(v schemas.Verb) bool { return string(v) == string(r.verb) }) {
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
		if slices.ContainsFunc(c.In, func(wanted string) bool { return wanted == string(v) }) {
			return true
		}
	}
	return false
}

// keptBytes is the allocation size for texts that aggregates keep: the texts of some dozen groups.
const keptBytes = 1 << 10

// newAggregate returns the aggregate of a definition other than a ratio, for windows that end at asOf. It copies the
// texts that it keeps to texts.
func newAggregate(d *Definition, asOf millis, maxGroups int, texts *arena) aggregate {
	switch d.Aggregate {
	case TakeLast:
		return &lastActions{n: d.N, last: make(Last, 0, d.N), texts: texts}
	case TakeTop:
		return &topValues{of: d.Of, n: d.N, places: map[string]int{}, max: maxGroups, texts: texts}
	case MeanEmbedding, Cosine:
		return &meanVector{def: d}
	}
	if d.GroupBy.isZero() {
		return &scalar{def: d, asOf: asOf, texts: texts}
	}
	return &grouped{def: d, asOf: asOf, places: map[string]int{}, max: maxGroups, texts: texts}
}

// tally holds the running totals of all scalar aggregates.
type tally struct {
	rows          int
	asOf          millis // time as of which rows are weighed
	weight        float64
	sum, min, max float64
	distinct      map[string]struct{}
	many          *schemas.Union // replaces distinct above ExactDistinct
}

// measure is the contribution of one row: nothing, a number, or values.
type measure struct {
	number float64
	values [][]byte
}

// measure returns the contribution of a row to a scalar aggregate. It is valid until the next call. It returns false if
// the row is skipped.
func (d *Definition) measure(r *row) (measure, bool) {
	rule, _ := d.Aggregate.rule()
	switch rule.of {
	case numbersAt:
		values := r.values(d.Of)
		if len(values) == 0 {
			return measure{}, false
		}
		x, ok := number(string(values[0]))
		return measure{number: x}, ok
	case valuesAt:
		values := r.values(d.Of)
		return measure{values: values}, len(values) > 0
	}
	return measure{}, true
}

// add adds a row with the time at. Rows come newest first. asOf is the end of the window.
func (t *tally) add(d *Definition, m measure, at, asOf millis, texts *arena) {
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
		t.addValue(v, texts)
	}
}

func (t *tally) addValue(v []byte, texts *arena) {
	if t.many != nil {
		t.many.Add(string(v))
		return
	}
	if t.distinct == nil {
		t.distinct = map[string]struct{}{}
	}
	if _, known := t.distinct[string(v)]; known {
		return
	}
	t.distinct[texts.text(v)] = struct{}{}
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

// scalar implements count, rate, sum, mean, min, max and distinct without grouping.
type scalar struct {
	def   *Definition
	asOf  millis
	tally tally
	texts *arena
}

func (s *scalar) add(r *row) {
	if m, ok := s.def.measure(r); ok {
		s.tally.add(s.def, m, r.time, s.asOf, s.texts)
	}
}

func (s *scalar) result() Result { return s.tally.result(s.def) }

// fewGroups is the initial capacity for groups: most definitions have no more.
const fewGroups = 16

// grouped is a scalar aggregate per group. It opens at most max groups, those with the newest actions.
type grouped struct {
	def     *Definition
	asOf    millis
	places  map[string]int // index of each group in tallies
	tallies []tally
	max     int
	capped  bool
	groups  [][]byte // groups of the present row
	texts   *arena
}

func (g *grouped) add(r *row) {
	g.groups = append(g.groups[:0], r.values(g.def.GroupBy)...) // a copy of the slice: measure reads from the row again
	if len(g.groups) == 0 {
		return
	}
	m, ok := g.def.measure(r)
	if !ok {
		return
	}
	for _, name := range g.groups {
		if t := g.tally(name); t != nil {
			t.add(g.def, m, r.time, g.asOf, g.texts)
		}
	}
}

// tally returns the tally of a group, valid until the next call, or nil for a new group above max.
func (g *grouped) tally(name []byte) *tally {
	place, known := g.places[string(name)]
	switch {
	case known:
		return &g.tallies[place]
	case len(g.tallies) >= g.max:
		g.capped = true
		return nil
	}
	if g.tallies == nil {
		g.tallies = make([]tally, 0, min(g.max, fewGroups))
	}
	g.places[g.texts.text(name)] = len(g.tallies)
	g.tallies = append(g.tallies, tally{})
	return &g.tallies[len(g.tallies)-1]
}

func (g *grouped) result() Result {
	groups, res := make(Groups, len(g.tallies)), Result{}
	for name, place := range g.places {
		if n, ok := g.tallies[place].result(g.def).Value.(Number); ok {
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
	n     int
	last  Last
	texts *arena
}

func (l *lastActions) add(r *row) {
	if len(l.last) < l.n {
		l.last = append(l.last, Acted{
			Object: schemas.ID(l.texts.text(r.object)), Verb: schemas.Verb(l.texts.text(r.verb)), Timestamp: r.time.time(),
		})
	}
}

func (l *lastActions) result() Result { return Result{Value: l.last} }

// topValues implements top. It counts at most max values, those of the newest actions.
type topValues struct {
	of     Path
	n, max int
	places map[string]int // index of each value in counts
	counts Top
	capped bool
	texts  *arena
}

func (t *topValues) add(r *row) {
	for _, v := range r.values(t.of) {
		place, known := t.places[string(v)]
		if !known && len(t.counts) >= t.max {
			t.capped = true
			continue
		}
		if !known {
			place = len(t.counts)
			value := t.texts.text(v)
			t.places[value], t.counts = place, append(t.counts, Counted{Value: value})
		}
		t.counts[place].Count++
	}
}

func (t *topValues) result() Result {
	res := Result{Value: topOf(t.counts, t.n)}
	if t.capped {
		res.Reasons = []Reason{Cap}
	}
	return res
}

// meanVector implements mean_embedding, and the user's side of cosine.
type meanVector struct {
	def    *Definition
	sum    Vector
	newest millis // time of the first row, as of which the others are weighed
	weight float64
}

func (m *meanVector) add(r *row) {
	v := r.vector(m.def.Of)
	if m.sum == nil && len(v) > 0 {
		m.sum, m.newest = make(Vector, len(v)/4), r.time
	}
	if len(v) == 0 || len(v) != 4*len(m.sum) {
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
