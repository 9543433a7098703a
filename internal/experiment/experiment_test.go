package experiment

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func near(a, b, within float64) bool { return math.Abs(a-b) <= within }

// The variance of a ratio is that of the residuals of the users, and users in parts are the same as users together.
func TestSums_Ratio(t *testing.T) {
	users := [][2]float64{{1, 10}, {0, 5}, {4, 20}, {2, 5}}
	var all, first, second Sums
	for i, u := range users {
		all.Add(u[0], u[1])
		if i < 2 {
			first.Add(u[0], u[1])
		} else {
			second.Add(u[0], u[1])
		}
	}
	first.Merge(second)
	expect.Equal(t, first, all, "merged")
	ratio, squares := 7.0/40, 0.0
	for _, u := range users {
		squares += math.Pow(u[0]-ratio*u[1], 2)
	}
	want := math.Sqrt(squares*4/3) / 40
	if e := all.Ratio(); !near(e.Value, ratio, 1e-12) || !near(e.StdErr, want, 1e-12) || !near(e.High-e.Low, 2*1.959964*want, 1e-6) {
		t.Errorf("got %+v, want %v with the standard error %v", e, ratio, want)
	}
	for name, few := range map[string]Sums{"no user": {}, "one user": {1, 1, 2, 1, 2, 4}, "no items": {Users: 9}, "no actions": {Users: 9, Y: 9, YY: 9}} {
		expect.True(t, few.Ratio() == nil, "%s: no ratio", name)
	}
}

// 95 % intervals of the difference of two arms cover the truth, although the items of a user are alike.
func TestCompare_CoversTruth(t *testing.T) {
	const runs, truth = 200, 0.05
	covered := 0
	for seed := range uint64(runs) {
		random := rand.New(rand.NewPCG(seed, 1))
		arm := func(rate float64) Tally {
			a := ActionTally{}
			for range 400 {
				own, items := rate*2*random.Float64(), 1+random.IntN(60) // the user's rate is uniform around that of the arm
				acted := 0.0
				for range items {
					if random.Float64() < own {
						acted++
					}
				}
				a.PerItem.Add(acted, float64(items))
			}
			return Tally{Actions: []ActionTally{a}}
		}
		d := Compare([]Tally{arm(0.2), arm(0.2 + truth)}, 1, 0.05)[0].Arms[1].Actions[0].Difference
		if d.Low <= truth && truth <= d.High {
			covered++
		}
	}
	expect.Between(t, covered, 180, runs-1, "intervals of %d that cover the truth, about 95 %%", runs)
}

// Values of tables of the chi-square distribution.
func TestChiSquareTail(t *testing.T) {
	for _, c := range []struct {
		x       float64
		degrees int
		want    float64
	}{{3.841, 1, 0.05}, {6.635, 1, 0.01}, {5.991, 2, 0.05}, {7.815, 3, 0.05}, {13.277, 4, 0.01}, {23.209, 10, 0.01}, {0, 1, 1}, {0, 3, 1}} {
		expect.Near(t, chiSquareTail(c.x, c.degrees), c.want, 2e-5, "%v with %d degrees of freedom", c.x, c.degrees)
	}
}

func TestSampleRatio(t *testing.T) {
	for name, c := range map[string]struct {
		users    []int
		shares   []float64
		tested   bool
		mismatch bool
	}{
		"one arm":        {[]int{9}, []float64{1}, false, false},
		"no users":       {[]int{0, 0}, []float64{1, 1}, false, false},
		"unknown shares": {[]int{5, 5}, []float64{0.5, 0}, false, false},
		"as planned":     {[]int{5030, 4970}, []float64{0.5, 0.5}, true, false},
		"uneven":         {[]int{9010, 990}, []float64{0.9, 0.1}, true, false},
		"users lost":     {[]int{5000, 4600}, []float64{0.5, 0.5}, true, true},
		"three arms":     {[]int{5000, 2500, 2200}, []float64{0.5, 0.25, 0.25}, true, true},
	} {
		var arms []Tally
		for i, n := range c.users {
			arms = append(arms, Tally{Count: Count{Users: n, Share: c.shares[i]}})
		}
		if r := newSampleRatio(arms); (r != nil) != c.tested || r != nil && r.Mismatch != c.mismatch {
			t.Errorf("%s: got %+v, want tested %v, mismatch %v", name, r, c.tested, c.mismatch)
		}
	}
}

// The textbook: a rate of 10 %, an effect of 5 % of it and one item per user need 56,500 users in each arm.
func TestDaysNeeded(t *testing.T) {
	const users = 1000
	half := Sums{Users: users, X: users / 10, Y: users, XX: users / 10, XY: users / 10, YY: users}
	e := Compare([]Tally{{Actions: []ActionTally{{PerItem: half}}}, {Actions: []ActionTally{{PerItem: half}}}}, 2, 0.05)
	want := 2 * math.Pow(1.959964+0.841621, 2) * 2 * 0.1 * 0.9 / math.Pow(0.005, 2) / users // the two days had 1,000 users in each arm
	if got := e[0].Arms[1].Actions[0].DaysNeeded; got == nil || !near(*got, want, want/500) {
		t.Errorf("got %v, want %v", got, want)
	}
	expect.True(t, e[0].Arms[0].Actions[0].DaysNeeded == nil, "control: no days needed")
}
