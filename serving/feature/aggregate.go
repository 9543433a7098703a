package feature

import (
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

// aggregate accumulates the actions of a definition that pass its filter. They come newest first.
type aggregate interface {
	add(in *actionInput)
	result() Result
}

// newAggregate returns the aggregate of a definition other than a ratio, for windows that end at asOf.
func newAggregate(d *Definition, asOf millis, maxGroups int) aggregate {
	switch d.Aggregate {
	case TakeLast:
		return &lastActions{n: d.N, last: make(Last, 0, d.N)}
	case TakeSequence:
		return newNewestActions(d)
	case TakeTop:
		counts := &Definition{Aggregate: Count, GroupBy: Grouping{d.Of}, N: d.N}
		return &topValues{*newNumbers(counts, asOf, maxGroups)}
	case MeanEmbedding, Cosine:
		return &meanVector{def: d}
	}
	return newNumbers(d, asOf, maxGroups)
}

// numbers implements the aggregates whose values are numbers, alone or in groups. It opens at most max groups, those
// with the newest actions.
type numbers struct {
	def    *Definition
	takes  takes
	asOf   millis
	groups map[string]int // index in tallies by group; nil: no grouping
	all    []tally        // of the groups, or a single one
	max    int
	capped bool
}

func newNumbers(d *Definition, asOf millis, maxGroups int) *numbers {
	rule, _ := d.Aggregate.rule()
	n := &numbers{def: d, takes: rule.of, asOf: asOf, max: maxGroups}
	if len(d.GroupBy) == 0 {
		n.all = make([]tally, 1)
	} else {
		n.groups, n.all = map[string]int{}, make([]tally, 0, 8)
	}
	return n
}

func (n *numbers) add(in *actionInput) {
	x := 0.0
	if n.takes != nothing {
		in.values = n.def.Of.appendValues(in.values[:0], in.EnrichedAction)
		ok := len(in.values) > 0
		if ok && n.takes == numbersAt {
			x, ok = number(in.values[0])
		}
		if !ok {
			return
		}
	}
	if n.groups == nil {
		n.addTo(&n.all[0], x, in)
		return
	}
	in.groups = in.appendGroups(in.groups[:0], n.def.GroupBy)
	for _, name := range in.groups {
		if t := n.group(name); t != nil {
			n.addTo(t, x, in)
		}
	}
}

// group returns the tally of a group, or nil if there are too many groups. It is valid until the next call.
func (n *numbers) group(name string) *tally {
	i, ok := n.groups[name]
	if !ok {
		if len(n.all) >= n.max {
			n.capped = true
			return nil
		}
		i = len(n.all)
		n.groups[name], n.all = i, append(n.all, tally{})
	}
	return &n.all[i]
}

// addTo adds an action with the number x, or the values of the input, to a tally.
func (n *numbers) addTo(t *tally, x float64, in *actionInput) {
	if t.actions == 0 {
		t.min, t.max, t.asOf = x, x, n.asOf
		if n.def.Aggregate.isMean() {
			t.asOf = in.at
		}
	}
	w := n.def.weight(t.asOf - in.at)
	t.actions++
	t.weight += w
	t.sum += x * w
	t.min, t.max = min(t.min, x), max(t.max, x)
	if n.takes != valuesAt {
		return
	}
	for _, v := range in.values {
		t.addValue(v)
	}
}

func (n *numbers) result() Result {
	if n.groups == nil {
		return n.all[0].result(n.def)
	}
	largest, reasons := n.largest(), []Reason(nil)
	groups := make(Groups, len(largest))
	for _, g := range largest { // every group has at least one action
		if x := n.all[n.groups[g.Value]].value(n.def); finite(x) {
			groups[g.Value] = x
		}
	}
	if len(groups) < len(largest) {
		reasons = append(reasons, Overflow)
	}
	return Result{Value: groups, Reasons: append(reasons, n.cap()...)}
}

// largest returns the groups of the value, with their actions; see Definition.largest.
func (n *numbers) largest() []Counted {
	groups := make([]Counted, 0, len(n.groups))
	for name, i := range n.groups {
		groups = append(groups, Counted{Value: name, Count: int64(n.all[i].actions)})
	}
	return n.def.largest(groups)
}

// cap returns the reason Cap if there were too many groups.
func (n *numbers) cap() []Reason {
	if n.capped {
		return []Reason{Cap}
	}
	return nil
}

// tally holds the running totals of a group.
type tally struct {
	actions       int
	asOf          millis // time as of which actions are weighed
	weight        float64
	sum, min, max float64
	distinct      map[string]struct{}
	many          *schemas.Union // replaces distinct above ExactDistinct
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
	switch {
	case d.Aggregate == Sum:
		return t.sum
	case d.Aggregate == Mean:
		return t.sum / t.weight
	case d.Aggregate == Min:
		return t.min
	case d.Aggregate == Max:
		return t.max
	case d.Aggregate == CountDistinct && t.many != nil:
		return math.Round(t.many.Estimate())
	case d.Aggregate == CountDistinct:
		return float64(len(t.distinct))
	}
	return d.scale(t.weight)
}

// lastActions implements last.
type lastActions struct {
	n    int
	last Last
}

func (l *lastActions) add(in *actionInput) {
	if len(l.last) < l.n {
		l.last = append(l.last, Acted{Object: in.Object, Verb: in.Verb, Timestamp: in.at.time()})
	}
}

func (l *lastActions) result() Result { return Result{Value: l.last} }

// topValues implements top: the greatest of the counts by value.
type topValues struct{ numbers }

func (t *topValues) result() Result { return Result{Value: Top(t.largest()), Reasons: t.cap()} }

// meanVector implements mean_embedding, and the user's side of cosine.
type meanVector struct {
	def    *Definition
	sum    Vector
	newest millis // time of the first action, as of which the others are weighed
	weight float64
}

func (m *meanVector) add(in *actionInput) {
	v := m.def.Of.vectorOf(in.EnrichedAction)
	if m.sum == nil {
		m.newest = in.at
	}
	if len(v) > 0 && (m.sum == nil || len(v) == len(m.sum)) {
		m.addWeighed(v, m.def.weight(m.newest-in.at))
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
	if len(m.sum) == 0 {
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
