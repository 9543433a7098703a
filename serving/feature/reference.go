package feature

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Reference evaluates a definition of entity user or pair over all actions of a user, by brute force. It specifies the
// meaning of a definition. For a pair it returns all groups of the user, from which the pin's own are selected, or for
// Cosine the user's vector, which is compared with the pin's. The order of the actions does not matter. Actions outside
// the kept part of the span are ignored. Lookup is ignored, too: the embeddings are those of the actions.
func Reference(def Definition, span Span, actions []schemas.EnrichedAction) Result {
	if def.Aggregate == Ratio {
		return divide(def, Reference(*def.Numerator, span, actions), Reference(*def.Denominator, span, actions))
	}
	win := span.stretch(def.Window)
	rows := slices.DeleteFunc(slices.Clone(actions), func(a schemas.EnrichedAction) bool {
		return !win.holds(floor(a.Timestamp)) || !def.matches(&a)
	})
	slices.SortFunc(rows, newestFirst)
	res := referenceValue(def, win.upTo, rows)
	if win.cut {
		res.Reasons = append(res.Reasons, Window)
	}
	return res
}

// ReferenceByKey is Reference for every definition: with Lookup, it takes the embeddings from pins.
func ReferenceByKey(def Definition, span Span, actions []schemas.EnrichedAction, pins func(schemas.PinID) (own PinAttributes, known bool)) Result {
	if !def.Lookup {
		return Reference(def, span, actions)
	}
	weights := Reference(def.scanned()[0], span, actions)
	vectors := map[schemas.PinID][]float32{}
	if groups, ok := weights.Value.(Groups); ok {
		for name := range groups {
			if own, known := pins(schemas.PinID(name)); known {
				vectors[schemas.PinID(name)] = own.Embedding
			}
		}
	}
	return def.settled([]Result{weights}, vectors)
}

// ReferencePair evaluates a definition of entity pair over the actions of its user. pins returns the data of a pin.
func ReferencePair(def Definition, span Span, actions []schemas.EnrichedAction, pin schemas.PinID, pins func(schemas.PinID) (own PinAttributes, known bool)) Result {
	own, known := pins(pin)
	return pick(def, ReferenceByKey(def, span, actions, pins), pin, own, known)
}

// ReferenceItems evaluates a definition of entity pin over all counts of a pin. counts has each step at most once. The
// mean of recent actors is the last one in counts.
func ReferenceItems(def Definition, now schemas.Micros, counts []schemas.ItemCounts) Result {
	if def.Aggregate == Ratio {
		return divide(def, ReferenceItems(*def.Numerator, now, counts), ReferenceItems(*def.Denominator, now, counts))
	}
	groups, actors := map[string]float64{}, &schemas.Union{}
	var mean []float32
	total := 0.0
	for _, c := range counts {
		if len(c.Embedding) > 0 {
			mean = c.Embedding
		}
		first, last := floor(c.Start), floor(c.Start+schemas.ItemStep)-1
		if first > floor(now) || last <= floor(now)-durationMillis(def.Window) {
			continue
		}
		actors.Merge(c.Actors)
		weight := def.weight(floor(now) - first)
		for verb, n := range c.Counts {
			if def.countsItem(schemas.Verb(verb)) && n > 0 {
				groups[verb] += float64(n) * weight
				total += float64(n) * weight
			}
		}
	}
	switch {
	case def.Aggregate == MeanEmbedding:
		return vectorOf(mean)
	case def.Aggregate == CountDistinct:
		return Result{Value: Number(math.Round(actors.Estimate()))}
	case def.GroupBy.isZero():
		return Result{Value: Number(def.scale(total))}
	}
	for verb, n := range groups {
		groups[verb] = def.scale(n)
	}
	return Result{Value: Groups(groups)}
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

func referenceValue(def Definition, asOf millis, rows []schemas.EnrichedAction) Result {
	switch def.Aggregate {
	case TakeLast:
		return Result{Value: referenceLast(def, rows)}
	case TakeTop:
		return Result{Value: referenceTop(def, rows)}
	case MeanEmbedding, Cosine:
		return referenceVector(def, rows)
	}
	if def.GroupBy.isZero() {
		return referenceScalar(def, asOf, rows)
	}
	return referenceGroups(def, asOf, rows)
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
	all := make(Top, 0, len(counts))
	for v, count := range counts {
		all = append(all, Counted{Value: v, Count: count})
	}
	return topOf(all, def.N)
}

// topOf returns the n most frequent values. It reorders top.
func topOf(top Top, n int) Top {
	slices.SortFunc(top, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	n = min(len(top), n)
	return append(make(Top, 0, n), top[:n]...)
}

func referenceVector(def Definition, rows []schemas.EnrichedAction) Result {
	var vectors [][]float32
	var weights []float64
	var newest millis
	for _, a := range rows {
		v := def.Of.vectorOf(&a)
		if len(v) == 0 || len(vectors) > 0 && len(v) != len(vectors[0]) {
			continue
		}
		if len(vectors) == 0 {
			newest = floor(a.Timestamp)
		}
		vectors = append(vectors, v)
		weights = append(weights, def.weight(newest-floor(a.Timestamp)))
	}
	return meanOf(vectors, weights)
}

// meanOf returns the weighted mean of vectors of the same length.
func meanOf(vectors [][]float32, weights []float64) Result {
	if len(vectors) == 0 {
		return absent(Empty)
	}
	mean, total := make(Vector, len(vectors[0])), 0.0
	for _, w := range weights {
		total += w
	}
	for i := range mean {
		for j, v := range vectors {
			mean[i] += float64(v[i]) * weights[j]
		}
		mean[i] /= total
		if !finite(mean[i]) {
			return absent(Overflow)
		}
	}
	return Result{Value: mean}
}

func referenceGroups(def Definition, asOf millis, rows []schemas.EnrichedAction) Result {
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
		one := referenceScalar(def, asOf, members)
		if one.Value == nil {
			res.Reasons = one.Reasons // only Overflow is possible, because something was measured
			continue
		}
		groups[g] = float64(one.Value.(Number))
	}
	res.Value = groups
	return res
}

// measured returns the actions that have input for the aggregate.
func measured(def Definition, rows []schemas.EnrichedAction) []schemas.EnrichedAction {
	return slices.DeleteFunc(slices.Clone(rows), func(a schemas.EnrichedAction) bool {
		switch {
		case def.Of.isZero():
			return false
		case def.Aggregate == CountDistinct:
			return len(def.Of.valuesOf(&a)) == 0
		}
		return len(numbers(def, asOfAny, []schemas.EnrichedAction{a})) == 0
	})
}

// asOfAny is passed if the weights do not matter.
const asOfAny millis = 0

// weighed is a number and its weight.
type weighed struct{ x, weight float64 }

func numbers(def Definition, asOf millis, rows []schemas.EnrichedAction) []weighed {
	var out []weighed
	for _, a := range rows {
		for _, v := range def.Of.valuesOf(&a) {
			x, ok := number(v)
			if !ok {
				continue
			}
			if len(out) == 0 && def.Aggregate.isMean() {
				asOf = floor(a.Timestamp)
			}
			out = append(out, weighed{x, def.weight(asOf - floor(a.Timestamp))})
		}
	}
	return out
}

func referenceScalar(def Definition, asOf millis, rows []schemas.EnrichedAction) Result {
	switch def.Aggregate {
	case Count, Rate:
		total := 0.0
		for _, a := range rows {
			total += def.weight(asOf - floor(a.Timestamp))
		}
		return Result{Value: Number(def.scale(total))}
	case CountDistinct:
		return Result{Value: referenceDistinct(def, rows)}
	}
	return referenceNumber(def.Aggregate, numbers(def, asOf, rows))
}

func referenceDistinct(def Definition, rows []schemas.EnrichedAction) Number {
	values, union := map[string]bool{}, &schemas.Union{}
	for _, a := range rows {
		for _, v := range def.Of.valuesOf(&a) {
			values[v] = true
			union.Add(v)
		}
	}
	if len(values) > ExactDistinct {
		return Number(math.Round(union.Estimate()))
	}
	return Number(len(values))
}

func referenceNumber(a Aggregate, xs []weighed) Result {
	if len(xs) == 0 && a != Sum {
		return absent(Empty)
	}
	sum, total := 0.0, 0.0
	least, most := math.Inf(1), math.Inf(-1)
	for _, x := range xs {
		sum, total = sum+x.x*x.weight, total+x.weight
		least, most = min(least, x.x), max(most, x.x)
	}
	x := sum
	switch a {
	case Mean:
		x = sum / total
	case Min:
		x = least
	case Max:
		x = most
	}
	if !finite(x) {
		return absent(Overflow)
	}
	return Result{Value: Number(x)}
}

// scale returns a count as a rate per hour of the window if the aggregate is Rate, and unchanged otherwise.
func (d Definition) scale(count float64) float64 {
	if d.Aggregate != Rate {
		return count
	}
	return count / (float64(d.Window) / float64(time.Hour))
}
