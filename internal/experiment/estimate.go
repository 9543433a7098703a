// Package experiment compares the arms of experiments: rates with confidence intervals, the check of the sample ratio, and
// the days that an effect needs to be detected. `smartfeed evaluate` and the insights of the running product use it.
//
// Users are assigned to arms, so users are independent, and their items are not. All variances therefore are those of sums
// per user, by the delta method: Deng, Knoblich, Lu, "Applying the Delta Method in Metric Analytics", KDD 2018.
package experiment

import (
	"maps"
	"math"
	"slices"
)

// Sums has what the ratio of two sums over users needs. Each user has a pair x and y, for example actions and items.
type Sums struct {
	Users float64 `json:"users"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	XX    float64 `json:"xx"` // sum of x²
	XY    float64 `json:"xy"`
	YY    float64 `json:"yy"`
}

// Add adds a user.
func (s *Sums) Add(x, y float64) { s.Merge(Sums{1, x, y, x * x, x * y, y * y}) }

// Merge adds the users of other sums, who must be different users.
func (s *Sums) Merge(o Sums) {
	s.Users += o.Users
	s.X += o.X
	s.Y += o.Y
	s.XX += o.XX
	s.XY += o.XY
	s.YY += o.YY
}

// Ratio returns the sum of x divided by the sum of y. It returns nil if the users are too few for an interval: fewer than two,
// or all x or y are 0.
func (s Sums) Ratio() *Estimate {
	if s.Users < 2 || s.Y == 0 || s.XX == 0 {
		return nil
	}
	ratio := s.X / s.Y
	residuals := max(0, s.XX-2*ratio*s.XY+ratio*ratio*s.YY) // Σ (x - ratio·y)²
	return newEstimate(ratio, math.Sqrt(residuals*s.Users/(s.Users-1))/math.Abs(s.Y))
}

// Users has numbers of each user, all equally many.
type Users map[string][]float64

// Add adds numbers of a user to those added before.
func (u Users) Add(user string, numbers ...float64) {
	if u[user] == nil {
		u[user] = make([]float64, len(numbers))
	}
	for i, x := range numbers {
		u[user][i] += x
	}
}

// Sums returns the sums for the ratio of two of the numbers, of the users who have them. The users are in an order, so the rounding
// is always the same.
func (u Users) Sums(x, y int) (s Sums) {
	for _, user := range slices.Sorted(maps.Keys(u)) {
		if numbers := u[user]; numbers[x] != 0 || numbers[y] != 0 {
			s.Add(numbers[x], numbers[y])
		}
	}
	return s
}

// Estimate is an estimated number. The interval is normal, so it needs some hundred users.
type Estimate struct {
	Value  float64 `json:"value"`
	Low    float64 `json:"low"` // of the 95 % confidence interval
	High   float64 `json:"high"`
	StdErr float64 `json:"std_err"`
}

// Quantiles of the normal distribution.
var (
	confidence = math.Sqrt2 * math.Erfinv(0.95)    // two-sided, for intervals of 95 %
	power      = math.Sqrt2 * math.Erfinv(2*0.8-1) // one-sided, for a power of 80 %
)

func newEstimate(value, stdErr float64) *Estimate {
	return &Estimate{Value: value, Low: value - confidence*stdErr, High: value + confidence*stdErr, StdErr: stdErr}
}

// Minus returns the difference of two independent estimates. It returns nil if one is nil.
func (e *Estimate) Minus(o *Estimate) *Estimate {
	if e == nil || o == nil {
		return nil
	}
	return newEstimate(e.Value-o.Value, math.Hypot(e.StdErr, o.StdErr))
}

// daysNeeded returns the days after which an experiment detects a difference of the given size with a power of 80 %, at a
// level of 5 %. difference was estimated from a number of days. Each further day is taken to bring as many new users as these
// days did on average, so the result is too low if the same users return. It returns nil if that cannot be computed.
func daysNeeded(difference *Estimate, size, days float64) *float64 {
	if difference == nil || size <= 0 || difference.StdErr == 0 {
		return nil
	}
	stdErrs := (confidence + power) * difference.StdErr / size
	return new(days * stdErrs * stdErrs)
}

// SampleRatio compares the numbers of users in the arms with the shares of the arms. A mismatch means that the arms are not
// comparable: users are lost or duplicated in one of them.
type SampleRatio struct {
	PValue   float64 `json:"p_value"`  // of the chi-square test
	Mismatch bool    `json:"mismatch"` // PValue is below 0.0005
}

// mismatch is the p-value below which an experiment is invalid, as in Fabijan et al., "Diagnosing Sample Ratio Mismatch in
// Online Controlled Experiments", KDD 2019: lower than usual, because each experiment is checked repeatedly.
const mismatch = 0.0005

// newSampleRatio checks arms. It returns nil for one arm, and without users or shares.
func newSampleRatio(arms []Tally) *SampleRatio {
	users, shares := 0, 0.0
	for _, t := range arms {
		if t.Share <= 0 {
			return nil
		}
		users += t.Users
		shares += t.Share
	}
	if len(arms) < 2 || users == 0 {
		return nil
	}
	chiSquare := 0.0
	for _, t := range arms {
		expected := float64(users) * t.Share / shares
		chiSquare += (float64(t.Users) - expected) * (float64(t.Users) - expected) / expected
	}
	p := chiSquareTail(chiSquare, len(arms)-1)
	return &SampleRatio{PValue: p, Mismatch: p < mismatch}
}

// chiSquareTail returns the probability that a chi-square variable with the given degrees of freedom exceeds x: the
// recurrence over the degrees, from 1 or 2 on.
func chiSquareTail(x float64, degrees int) float64 {
	tail, k := math.Erfc(math.Sqrt(x/2)), 1
	if degrees%2 == 0 {
		tail, k = math.Exp(-x/2), 2
	}
	for ; k < degrees; k += 2 {
		half := float64(k) / 2
		gamma, _ := math.Lgamma(half + 1)
		tail += math.Exp(half*math.Log(x/2) - x/2 - gamma)
	}
	return tail
}
