package evaluate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
)

// world simulates users whose places, probabilities of actions and policies are known.
type world struct {
	*rand.Rand
	rows []*training.Row
	// Sums over all places: their number, and the expected actions of the logged policy and of the new one.
	places, logged, wanted float64
}

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// The logged policy, and a new one that shows other sources and ranks by the model.
var (
	loggedShares = map[string]float64{"following": 0.5, "related": 0.3, "interest": 0.2}
	newPolicy    = &Policy{
		Feed: "home", Shares: map[string]float64{"following": 0.3, "related": 0.6, "interest": 0.1}, Utility: map[string]float64{"save": 2}, Temperature: 1,
	}
	simulated = training.Layout{Outputs: []string{"noise", "save"}, Labels: map[string]string{"save": "24h0m0s"}}
)

// simulate simulates users in the arms "" and b, where actions are more probable by the given factor. The more active a user,
// the more places, and the users differ, so that items of a user are far from independent.
func simulate(seed uint64, users int, lift float64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1))}
	for i := range users {
		user, arm, active := fmt.Sprint("user:", seed, ":", i), "", w.Float64()
		factor := 2 * active
		if i%2 == 1 {
			arm, factor = "b", factor*lift
		}
		for visit := range 1 + w.IntN(1+int(8*active)) {
			for position := range 1 + w.IntN(6) {
				w.place(&training.Row{Item: training.Item{
					Visit: fmt.Sprint(user, ":", visit), User: user, Time: start.Add(time.Duration(visit) * 24 * time.Hour), Feed: "home", Arm: arm, ArmShare: 0.5,
					UserShare: 0.1, Policy: schemas.PolicyRandomized, Position: int32(position),
				}}, factor)
			}
		}
	}
	return w
}

// place adds a place with up to nine choices.
func (w *world) place(r *training.Row, factor float64) {
	sources := []string{"following", "related", "interest"}[w.IntN(2):] // a source may have no candidate
	var rates []float64
	for _, source := range sources {
		for k := range 3 {
			output := w.Float64()
			r.Choices = append(r.Choices, training.Choice{
				Source: source, Pin: fmt.Sprint(source, k), Score: 20000 + output + w.NormFloat64(), Outputs: map[string]float64{"noise": w.Float64(), "save": output},
			})
			rate := factor * (0.02 + 0.15*output*output)
			if source == "related" {
				rate += 0.1 * factor
			}
			rates = append(rates, rate)
		}
	}
	logged := drawn(r.Choices, loggedShares, func(c training.Choice) float64 { return c.Score })
	wanted := drawn(r.Choices, newPolicy.Shares, func(c training.Choice) float64 { return 2 * c.Outputs["save"] })
	at, chosen := w.Float64(), 0
	for i := range r.Choices {
		c := &r.Choices[i]
		c.Probability, c.SourceProbability = logged[i], logged[i/3*3]+logged[i/3*3+1]+logged[i/3*3+2]
		w.logged += logged[i] * rates[i]
		w.wanted += wanted[i] * rates[i]
		if at >= 0 {
			chosen = i
		}
		at -= logged[i]
	}
	w.places++
	acted := w.Float64() < rates[chosen]
	r.Choice, r.Pin, r.Propensity, r.Acted = int32(chosen), r.Choices[chosen].Pin, r.Choices[chosen].Probability, map[string]bool{"save": acted}
	w.rows = append(w.rows, r)
}

// drawn returns the probabilities of choices by brute force: those of the source, times those within the source.
func drawn(choices []training.Choice, shares map[string]float64, logit func(training.Choice) float64) []float64 {
	all, list := 0.0, make([]float64, len(choices))
	for i, c := range choices {
		if i%3 == 0 {
			all += shares[c.Source]
		}
		within := 0.0
		for _, other := range choices {
			if other.Source == c.Source {
				within += math.Exp(logit(other) - logit(c))
			}
		}
		list[i] = shares[c.Source] / within
	}
	for i := range list {
		list[i] /= all
	}
	return list
}

func (w *world) log() *training.Log {
	return &training.Log{Layout: simulated, Each: func(visit func(*training.Row) error) error {
		for _, r := range w.rows {
			if err := visit(r); err != nil {
				return err
			}
		}
		return nil
	}}
}

// covers reports whether the interval of an estimate contains the truth.
func covers(e *experiment.Estimate, truth float64) bool { return e.Low <= truth && truth <= e.High }

// The 95 % intervals of 100 simulated logs cover the truth at least 90 times, for each estimate. The truth is that of a log
// that is 40 times as large, with the expected actions of each place instead of simulated ones.
func TestRun_IntervalsCoverTruth(t *testing.T) {
	const runs, users, lift = 100, 500, 1.3
	truth, control := simulate(1<<40, 40*users, lift), simulate(1<<41, 40*users, 1)
	logged, wanted := truth.logged/truth.places, truth.wanted/truth.places
	difference := control.logged / control.places * (lift - 1)
	covered := map[string]int{}
	width := map[string]float64{}
	for seed := range uint64(runs) {
		report := must.Get(Run(simulate(seed, users, lift).log(), Config{Policy: newPolicy, MinOverlap: 0.1, Effect: 0.05}))(t)
		a, arm := report.Policy.Actions[0], report.Experiments[0].Arms[1].Actions[0]
		for name, c := range map[string]struct {
			*experiment.Estimate
			truth float64
		}{
			"logged": {a.Logged, logged}, "IPS": {a.IPS, wanted}, "SNIPS": {a.SNIPS, wanted}, "doubly robust": {a.DoublyRobust, wanted},
			"doubly robust - logged": {a.Difference, wanted - logged}, "difference of arms": {arm.Difference, difference},
		} {
			width[name] += c.StdErr / runs
			if covers(c.Estimate, c.truth) {
				covered[name]++
			}
		}
	}
	expect.AtLeast(t, wanted, 1.2*logged, "rate of the wanted policy")
	expect.AtLeast(t, difference, 0.02, "difference of the arms")
	for name, n := range covered {
		t.Logf("%s: %d of %d intervals cover the truth, mean standard error %.5f", name, n, runs, width[name])
		expect.AtLeast(t, n, 90, "%s: intervals of %d that cover the truth", name, runs)
	}
	if len(covered) != 6 || width["doubly robust"] > width["IPS"] {
		t.Errorf("standard errors: %v, want a smaller one of the doubly robust estimate than of IPS", width)
	}
}
