package feature

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Reference evaluates a definition of entity user or pair over all actions of one user, by brute force: it is what a
// definition means. Of a pair it returns the user's groups, out of which the pin's own are picked. The order of the
// actions does not matter; those that Span does not keep are ignored.
func Reference(def Definition, span Span, actions []schemas.EnrichedAction) Result {
	win := span.stretch(def.Window)
	rows := slices.DeleteFunc(slices.Clone(actions), func(a schemas.EnrichedAction) bool {
		return !win.holds(floor(a.Timestamp)) || !def.matches(&a)
	})
	slices.SortFunc(rows, newestFirst)
	res := referenceValue(def, rows)
	if win.cut {
		res.Reasons = append(res.Reasons, Window)
	}
	return res
}

// ReferenceItems evaluates a definition of entity pin over all counts of one pin, of which each step comes once.
func ReferenceItems(def Definition, now schemas.Micros, counts []schemas.ItemCounts) Result {
	groups := map[string]float64{}
	total := 0.0
	for _, c := range counts {
		first, last := floor(c.Start), floor(c.Start+schemas.ItemStep)-1
		if first > floor(now) || last <= floor(now)-durationMillis(def.Window) {
			continue
		}
		for verb, n := range c.Counts {
			if def.countsItem(schemas.Verb(verb)) && n > 0 {
				groups[verb] += float64(n)
				total += float64(n)
			}
		}
	}
	if !def.GroupBy.isZero() {
		for verb, n := range groups {
			groups[verb] = def.scale(n)
		}
		return Result{Value: Groups(groups)}
	}
	return Result{Value: Number(def.scale(total))}
}

func newestFirst(a, b schemas.EnrichedAction) int {
	return cmp.Or(cmp.Compare(floor(b.Timestamp), floor(a.Timestamp)), cmp.Compare(b.ID, a.ID))
}

func (d Definition) matches(a *schemas.EnrichedAction) bool {
	if len(d.Verbs) > 0 && !slices.Contains(d.Verbs, a.Verb) {
		return false
	}
	for _, c := range d.Where {
		if !slices.ContainsFunc(c.Path.valuesOf(a), func(v string) bool { return slices.Contains(c.In, v) }) {
			return false
		}
	}
	return true
}

func referenceValue(def Definition, rows []schemas.EnrichedAction) Result {
	switch def.Aggregate {
	case TakeLast:
		return Result{Value: referenceLast(def, rows)}
	case TakeTop:
		return Result{Value: referenceTop(def, rows)}
	case MeanEmbedding:
		return referenceVector(def, rows)
	}
	if def.GroupBy.isZero() {
		return referenceScalar(def, rows)
	}
	return referenceGroups(def, rows)
}

func referenceLast(def Definition, rows []schemas.EnrichedAction) Last {
	last := Last{}
	for _, a := range rows[:min(len(rows), def.N)] {
		last = append(last, Acted{Object: a.Object, Verb: a.Verb, Timestamp: floor(a.Timestamp).time()})
	}
	return last
}

func referenceTop(def Definition, rows []schemas.EnrichedAction) Top {
	counts := map[string]int64{}
	for _, a := range rows {
		for _, v := range def.Of.valuesOf(&a) {
			counts[v]++
		}
	}
	return topOf(counts, def.N)
}

// topOf returns the n most frequent values.
func topOf(counts map[string]int64, n int) Top {
	top := make(Top, 0, len(counts))
	for v, count := range counts {
		top = append(top, Counted{Value: v, Count: count})
	}
	slices.SortFunc(top, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	return top[:min(len(top), n):min(len(top), n)]
}

func referenceVector(def Definition, rows []schemas.EnrichedAction) Result {
	var vectors [][]float32
	for _, a := range rows {
		v := def.Of.vectorOf(&a)
		if len(v) > 0 && (len(vectors) == 0 || len(v) == len(vectors[0])) {
			vectors = append(vectors, v)
		}
	}
	if len(vectors) == 0 {
		return absent(Empty)
	}
	mean := make(Vector, len(vectors[0]))
	for i := range mean {
		for _, v := range vectors {
			mean[i] += float64(v[i])
		}
		mean[i] /= float64(len(vectors))
		if !finite(mean[i]) {
			return absent(Overflow)
		}
	}
	return Result{Value: mean}
}

func referenceGroups(def Definition, rows []schemas.EnrichedAction) Result {
	byGroup := map[string][]schemas.EnrichedAction{}
	for _, a := range rows {
		for _, g := range def.GroupBy.valuesOf(&a) {
			byGroup[g] = append(byGroup[g], a)
		}
	}
	groups, res := Groups{}, Result{}
	for g, members := range byGroup {
		if len(measured(def, members)) == 0 {
			continue
		}
		one := referenceScalar(def, members)
		if one.Value == nil {
			res.Reasons = one.Reasons // Overflow: the only one, as there is something measured
			continue
		}
		groups[g] = float64(one.Value.(Number))
	}
	res.Value = groups
	return res
}

// measured returns the actions that have what the aggregate is taken of.
func measured(def Definition, rows []schemas.EnrichedAction) []schemas.EnrichedAction {
	return slices.DeleteFunc(slices.Clone(rows), func(a schemas.EnrichedAction) bool {
		switch {
		case def.Of.isZero():
			return false
		case def.Aggregate == CountDistinct:
			return len(def.Of.valuesOf(&a)) == 0
		}
		return len(numbers(def, []schemas.EnrichedAction{a})) == 0
	})
}

func numbers(def Definition, rows []schemas.EnrichedAction) []float64 {
	var out []float64
	for _, a := range rows {
		for _, v := range def.Of.valuesOf(&a) {
			if x, ok := number(v); ok {
				out = append(out, x)
			}
		}
	}
	return out
}

func referenceScalar(def Definition, rows []schemas.EnrichedAction) Result {
	switch def.Aggregate {
	case Count, Rate:
		return Result{Value: Number(def.scale(float64(len(rows))))}
	case CountDistinct:
		values := map[string]bool{}
		for _, a := range rows {
			for _, v := range def.Of.valuesOf(&a) {
				values[v] = true
			}
		}
		return Result{Value: Number(len(values))}
	}
	return referenceNumber(def.Aggregate, numbers(def, rows))
}

func referenceNumber(a Aggregate, xs []float64) Result {
	if len(xs) == 0 && a != Sum {
		return absent(Empty)
	}
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	x := sum
	switch a {
	case Mean:
		x = sum / float64(len(xs))
	case Min:
		x = slices.Min(xs)
	case Max:
		x = slices.Max(xs)
	}
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return absent(Overflow)
	}
	return Result{Value: Number(x)}
}

// scale turns a count into a rate per hour of the window where the definition asks for one.
func (d Definition) scale(count float64) float64 {
	if d.Aggregate != Rate {
		return count
	}
	return count / (float64(d.Window) / float64(time.Hour))
}
