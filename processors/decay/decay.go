// Package decay adds up weights that halve every half-life, in a form that time does not change: the logarithm of
// Σ w·2^(t/half-life), which is forward decay (Cormode, Shkapenyuk, Srivastava, Xu, ICDE 2009). Two sums of the same
// half-life can be compared at every moment, and the order in which weights come does not matter.
package decay

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Sum is the logarithm of a sum of weights, as of the epoch.
type Sum float64

// Left is what is left at a time of a weight of 1 from another: above 1 if that is later. halfLife is a microsecond at
// least. Times of events have no lower bound: as integers their difference can overflow, and age would turn into youth
// without end.
func Left(from, to schemas.Micros, halfLife time.Duration) float64 {
	return math.Exp2((float64(from) - float64(to)) / float64(halfLife.Microseconds()))
}

// None is the sum of nothing.
func None() Sum { return Sum(math.Inf(-1)) }

// Once is what a weight at a time is worth: ln(w · 2^(t/half-life)), t in seconds since 1970. Weight and halfLife are
// positive. A float64 resolves it to 2e-13 at a half-life of a month: a sum is good to as many parts.
func Once(weight float64, at schemas.Micros, halfLife time.Duration) Sum {
	return Sum(math.Log(weight) + float64(at)/1e6/halfLife.Seconds()*math.Ln2)
}

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

// At is what the sum has decayed to at a time, in units of the weights.
func (a Sum) At(now schemas.Micros, halfLife time.Duration) float64 {
	return math.Exp(float64(a - Once(1, now, halfLife)))
}
