package feature

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

// numeric generates definitions of entity user whose values are numbers, alone or in groups.
func numeric() *rapid.Generator[Definition] {
	return rapid.Custom(func(t *rapid.T) Definition {
		paths := rapid.SampledFrom(valuePaths())
		d := Definition{Entity: User, Window: time.Duration(rapid.IntRange(1, 96*3600).Draw(t, "seconds")) * time.Second}
		d.Aggregate = rapid.SampledFrom([]Aggregate{Count, Rate, Sum, Mean, Min, Max, CountDistinct}).Draw(t, "aggregate")
		rule, _ := d.Aggregate.rule()
		switch rule.of {
		case numbersAt:
			d.Of = Path{objectAttribute, "x"}
		case valuesAt:
			d.Of = paths.Draw(t, "of")
		}
		d.GroupBy = rapid.SliceOfNDistinct(paths, 0, MaxKeys, rapid.ID).Draw(t, "group_by")
		if len(d.GroupBy) > 0 {
			d.N = rapid.IntRange(0, 4).Draw(t, "n")
		}
		if rule.decays && rapid.Bool().Draw(t, "decays") {
			d.HalfLife = time.Hour
		}
		if rapid.Bool().Draw(t, "of one verb") {
			d.Verbs = []schemas.Verb{schemas.Save}
		}
		if rapid.IntRange(0, 3).Draw(t, "filtered") == 0 {
			d.Where = []Condition{{paths.Draw(t, "where"), []string{"x", "pin:1", "interest:2", "save"}}}
		}
		return d
	})
}

// bruteForce reads all actions again for each group.
func bruteForce(d Definition, asOf millis, actions []schemas.EnrichedAction) Value {
	if len(d.GroupBy) == 0 {
		if x, ok := bruteForceNumber(d, asOf, actions); ok || d.Aggregate.zeroWhenEmpty() {
			return Number(x)
		}
		return nil
	}
	groups, sizes := Groups{}, map[string]int{}
	for _, a := range actions {
		for _, name := range bruteForceNames(d.GroupBy, a) {
			in := slices.DeleteFunc(slices.Clone(actions), func(a schemas.EnrichedAction) bool {
				return !slices.Contains(bruteForceNames(d.GroupBy, a), name)
			})
			if x, ok := bruteForceNumber(d, asOf, in); ok {
				groups[name], sizes[name] = x, bruteForceInputs(d, in)
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(sizes[b]-sizes[a], strings.Compare(a, b))
	})
	for i, name := range names {
		if d.N > 0 && i >= d.N {
			delete(groups, name)
		}
	}
	return groups
}

// bruteForceNames returns the names of the groups of an action.
func bruteForceNames(by Grouping, a schemas.EnrichedAction) []string {
	if len(by) == 1 {
		return by[0].appendValues(nil, &a)
	}
	escape := strings.NewReplacer(`\`, `\\`, `|`, `\|`)
	names := []string{""}
	for _, p := range by {
		var longer []string
		for _, name := range names {
			for _, v := range p.appendValues(nil, &a) {
				longer = append(longer, name+"|"+escape.Replace(v))
			}
		}
		names = longer
	}
	for i := range names {
		names[i] = names[i][1:]
	}
	return names
}

// bruteForceInputs returns the number of actions with input for the aggregate.
func bruteForceInputs(d Definition, actions []schemas.EnrichedAction) int {
	n := 0
	for _, a := range actions {
		if _, ok := bruteForceNumber(d, floor(a.Timestamp), []schemas.EnrichedAction{a}); ok {
			n++
		}
	}
	return n
}

// bruteForceNumber returns false if no action has input for the aggregate.
func bruteForceNumber(d Definition, asOf millis, actions []schemas.EnrichedAction) (x float64, ok bool) {
	var numbers, weights []float64
	values := map[string]bool{}
	for _, a := range actions {
		weights = append(weights, d.weight(asOf-floor(a.Timestamp)))
		for _, v := range d.Of.appendValues(nil, &a) {
			values[v] = true
			if x, ok := number(v); ok {
				numbers = append(numbers, x, weights[len(weights)-1])
			}
		}
	}
	sum, total, least, most := 0.0, 0.0, math.Inf(1), math.Inf(-1)
	for i := 0; i < len(numbers); i += 2 {
		sum, total = sum+numbers[i]*numbers[i+1], total+numbers[i+1]
		least, most = min(least, numbers[i]), max(most, numbers[i])
	}
	switch d.Aggregate {
	case Count, Rate:
		for _, w := range weights {
			x += w
		}
		return d.scale(x), len(weights) > 0
	case CountDistinct:
		return float64(len(values)), len(values) > 0
	}
	return map[Aggregate]float64{Sum: sum, Mean: sum / total, Min: least, Max: most}[d.Aggregate], len(numbers) > 0
}

func TestReference_AgreesWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		actions := rapid.SliceOfN(action(), 10, 20).Draw(t, "actions")
		for i := range actions {
			actions[i].ID = fmt.Sprint(i)
		}
		span := Span{AsOf: now - schemas.Micros(rapid.Int64Range(0, int64(hour)).Draw(t, "as of")), Now: now}
		for _, d := range rapid.SliceOfN(numeric(), 20, 20).Draw(t, "definitions") {
			window := span.stretch(d.Window)
			in := slices.DeleteFunc(slices.Clone(actions), func(a schemas.EnrichedAction) bool {
				return !window.holds(floor(a.Timestamp)) || !(&actionInput{EnrichedAction: &a}).passes(&d)
			})
			want, got := bruteForce(d, window.upTo, in), Reference(d, span, actions).Value
			expect.NoDiffBut(t, equal, got, want, "%+v (-brute force +reference)", d)
		}
	})
}
