// Package decay computes sums of weights that halve with every half-life. A Sum is the logarithm of Σ w·2^(t/half-life) over
// its weights, which does not change as time passes (forward decay: Cormode, Shkapenyuk, Srivastava, Xu, ICDE 2009). Two
// sums of the same Scale can be compared at any time. The order in which weights are added does not matter.
//
// A Sum does not reveal its half-life: with weights of 2026, it is about 480 at a half-life of a month and about 2050 at one
// of a week. Therefore the half-life of stored sums must not change.
package decay

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Sum is the logarithm of a sum of decayed weights, on a Scale.
type Sum float64

// Factor returns the remaining fraction, at to, of a weight that was added at from. It is above 1 if from is later than to.
// halfLife is at least one microsecond. The times are subtracted as floats: event times have no lower bound, so the
// difference of the integers could overflow and turn decay into growth.
func Factor(from, to schemas.Micros, halfLife time.Duration) float64 {
	return math.Exp2((float64(from) - float64(to)) / float64(halfLife.Microseconds()))
}

// None returns the sum of no weights.
func None() Sum { return Sum(math.Inf(-1)) }

// SumOf returns the sum of a single weight at a time. weight must be positive. With a half-life of a month, a float64
// resolves the logarithm to 2e-13, so the sum has a relative error of 2e-13.
func SumOf(weight float64, at schemas.Micros, s Scale) Sum {
	return Sum(math.Log(weight) + s.logUnit(at))
}

// Plus returns the sum of a and b: ln(e^a + e^b). It does not compute e^a or e^b, which may exceed the range of a float64.
func (a Sum) Plus(b Sum) Sum {
	if a < b {
		a, b = b, a
	}
	if b == None() {
		return a
	}
	return a + Sum(math.Log1p(math.Exp(float64(b-a))))
}

// Share returns the fraction of a in all, from 0 to 1.
func (a Sum) Share(all Sum) float64 { return min(1, math.Exp(float64(a-all))) }

// At returns the sum decayed to now, in units of the weights. It is at most math.MaxFloat64, because JSON has no
// infinity.
func (a Sum) At(now schemas.Micros, s Scale) float64 {
	return min(math.MaxFloat64, math.Exp(float64(a)-s.logUnit(now)))
}
