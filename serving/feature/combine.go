package feature

import (
	"math"
	"slices"
)

// Combined definitions. Stores evaluate only self-contained definitions. scanned returns those that a definition needs,
// and settled computes the requested result from theirs. A ratio needs two.

// scanned returns the definitions that stores evaluate for d.
func (d Definition) scanned() []Definition {
	if d.Aggregate == Ratio {
		return []Definition{*d.Numerator, *d.Denominator}
	}
	return []Definition{d}
}

// settled returns the result of d from the results of scanned.
func (d Definition) settled(parts []Result) Result {
	if d.Aggregate == Ratio {
		return divide(d, parts[0], parts[1])
	}
	return parts[0]
}

// compiled is a list of definitions with those that stores evaluate for it.
type compiled struct {
	defs    []Definition
	scanned []Definition
	from    []int // index in scanned of the first part of each definition; one more entry at the end
}

func compile(defs []Definition) compiled {
	c := compiled{defs: defs, from: []int{0}}
	for _, d := range defs {
		c.scanned = append(c.scanned, d.scanned()...)
		c.from = append(c.from, len(c.scanned))
	}
	return c
}

// settled returns the results of the definitions from the results of scanned.
func (c compiled) settled(results []Result) []Result {
	out := make([]Result, len(c.defs))
	for i, d := range c.defs {
		out[i] = d.settled(results[c.from[i]:c.from[i+1]])
	}
	return out
}

// divide returns a ratio, group by group if there is a grouping. A group that is only in the denominator
// counts as 0 in the numerator, if the numerator's aggregate of no actions is 0.
func divide(d Definition, of, by Result) Result {
	reasons := slices.Compact(slices.Sorted(slices.Values(slices.Concat(of.Reasons, by.Reasons))))
	switch by := by.Value.(type) {
	case Number:
		if of, ok := of.Value.(Number); ok && by != 0 {
			return quotient(float64(of)/float64(by), reasons)
		}
	case Groups:
		if of, ok := of.Value.(Groups); ok {
			return divideGroups(d, of, by, reasons)
		}
	}
	if of.Value != nil && by.Value != nil {
		reasons = append([]Reason{Empty}, reasons...)
	}
	return Result{Reasons: reasons}
}

func quotient(x float64, reasons []Reason) Result {
	if !finite(x) {
		return Result{Reasons: append(reasons, Overflow)}
	}
	return Result{Value: Number(x), Reasons: reasons}
}

func divideGroups(d Definition, of, by Groups, reasons []Reason) Result {
	groups := Groups{}
	for name, divisor := range by {
		dividend, ok := of[name]
		if divisor == 0 || !ok && !d.Numerator.Aggregate.zeroWhenEmpty() {
			continue
		}
		if x := dividend / divisor; finite(x) {
			groups[name] = x
		} else if !slices.Contains(reasons, Overflow) {
			reasons = append(reasons, Overflow)
		}
	}
	return Result{Value: groups, Reasons: reasons}
}

// cosine compares a user's mean with a pin's embedding.
func cosine(mean Vector, of []float32, reasons []Reason) Result {
	if len(of) != len(mean) {
		return Result{Reasons: append([]Reason{Attribute}, reasons...)}
	}
	dot, a, b := 0.0, 0.0, 0.0
	for i, x := range mean {
		y := float64(of[i])
		dot, a, b = dot+x*y, a+x*x, b+y*y
	}
	if a == 0 || b == 0 {
		return Result{Reasons: append([]Reason{Empty}, reasons...)}
	}
	// Take the root of each factor: the product of the squares could overflow.
	return quotient(min(1, max(-1, dot/math.Sqrt(a)/math.Sqrt(b))), reasons)
}
