// Package decay adds up weights that halve every half-life, in a form that time does not change: the logarithm of
// Σ w·2^(t/half-life), which is forward decay (Cormode, Shkapenyuk, Srivastava, Xu, ICDE 2009). Two sums of the same
// Scale can be compared at every moment, and the order in which weights come does not matter.
//
// A sum of 2026 is about 480 at a half-life of a month and 2050 at one of a week, and does not say of which it is. So whoever
// keeps sums keeps their scale beside them (Keep): it changes with the half-life, and the sums do not.
package decay

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Sum is the logarithm of a sum of weights, on a Scale.
type Sum float64

// Left is what is left at a time of a weight of 1 from another: above 1 if that is later. halfLife is a microsecond at
// least. Times of events have no lower bound: as integers their difference can overflow, and age would turn into youth
// without end.
func Left(from, to schemas.Micros, halfLife time.Duration) float64 {
	return math.Exp2((float64(from) - float64(to)) / float64(halfLife.Microseconds()))
}

// None is the sum of nothing.
func None() Sum { return Sum(math.Inf(-1)) }

// Once is what a weight at a time is worth. The weight is positive. A float64 resolves it to 2e-13 at a half-life of a
// month: a sum is good to as many parts.
func Once(weight float64, at schemas.Micros, s Scale) Sum { return Sum(math.Log(weight) + s.one(at)) }

// Plus adds two sums: ln(e^a + e^b), without leaving the logarithm, where the numbers would not fit.
func (a Sum) Plus(b Sum) Sum {
	if a < b {
		a, b = b, a
	}
	if b == None() {
		return a
	}
	return a + Sum(math.Log1p(math.Exp(float64(b-a))))
}

// Share is the part of a in all, 0 to 1.
func (a Sum) Share(all Sum) float64 { return min(1, math.Exp(float64(a-all))) }

// At is what the sum has decayed to at a time, in units of the weights, math.MaxFloat64 at most: JSON has no more.
func (a Sum) At(now schemas.Micros, s Scale) float64 {
	return min(math.MaxFloat64, math.Exp(float64(a)-s.one(now)))
}
