package rules

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// The log has the items of the chunk. The parts of a score add up to it, and a probability is in (0, 1], or unknown.
func TestLogged_AgreesWithMake(t *testing.T) {
	policies := map[schemas.Policy]bool{}
	rapid.Check(t, func(t *rapid.T) {
		f, pools, k := drawFeed(t), drawPools(t), drawSignals(t)
		v := Visit{User: "user:me", Time: 1e9, Limit: rapid.IntRange(1, 30).Draw(t, "limit")}
		c, logged := f.Make(v, pools, k), f.Logged(v, pools, k)
		policies[logged.Policy] = true
		must.Equal(t, len(logged.Items), len(c.Items), "logged items")
		for i, it := range logged.Items {
			of := c.Items[i]
			if it.Pin != of.Pin || it.Source != of.Source || it.Pool != of.Pool || it.Author != of.Author || it.RankScore != of.RankScore {
				t.Fatalf("item %d: %+v, want that of %+v", i, it, of)
			}
			checkLogged(t, logged.Policy, it)
		}
	})
	expect.AtLeast(t, len(policies), 3, "policies, %v", policies)
}

func checkLogged(t *rapid.T, policy schemas.Policy, it schemas.LoggedItem) {
	isExplored := it.Source == schemas.Explore
	sum := 0.0
	for _, part := range it.Parts {
		sum += part
	}
	if math.Abs(sum-float64(it.RankScore)) > 1e-9 != isExplored && len(it.Parts) > 0 || (len(it.Parts) == 0) != isExplored {
		t.Fatalf("parts %v, want those of the score %v", it.Parts, it.RankScore)
	}
	switch policy {
	case schemas.PolicyRandomized:
		if it.Propensity <= 0 || it.Propensity > 1 || it.Choices[it.Choice].Pin != it.Pin || it.Choices[it.Choice].Source != it.Source {
			t.Fatalf("randomized: %+v", it)
		}
	default:
		mayDiffer := isExplored && policy == schemas.PolicyExploration
		if it.Propensity != 1 && !mayDiffer || it.Propensity < 0 || it.Propensity > 1 || len(it.Choices) > 0 || it.Choice != -1 {
			t.Fatalf("%s: %+v", policy, it)
		}
	}
}

// The estimated propensity of an explored pin is close to the frequency with which visits with other draws show it.
func TestLogged_EstimatesPropensityOfExploredItems(t *testing.T) {
	f := exploring()
	counts := countsOf{"pin:s-000": {Impressions: 9, Saves: 5}, "pin:s-001": {Impressions: 9, Saves: 1}, "pin:s-002": {Impressions: 9}}
	shown, estimates := map[schemas.PinID]float64{}, map[schemas.PinID]float64{}
	const visits = 600
	for n := range visits {
		v := Visit{User: "user:me", Limit: 1, Memory: schemas.Memory{Draws: int64(n), Mix: map[string]float64{"s": 1}}}
		it := f.Logged(v, []Pool{poolOf("s", 3)}, Signals{Counts: counts}).Items[0]
		must.Equal(t, it.Source, schemas.Explore, "source of the first place")
		shown[it.Pin]++
		estimates[it.Pin] += it.Propensity
	}
	for pin, n := range shown {
		expect.Near(t, estimates[pin]/n, n/visits, 0.03, "%s: mean estimate, compared with the frequency", pin)
	}
	expect.Equal(t, len(shown), 3, "pins shown of %v", shown)
}

// Draws with a higher second item are excluded by the first one, so only the propensity of the first one is known.
func TestLogged_PropensityOfSecondExploredItemIsUnknown(t *testing.T) {
	f := exploring()
	v := Visit{User: "user:me", Limit: 4, Memory: schemas.Memory{Mix: map[string]float64{"s": 1}}}
	var got []float64
	for _, it := range f.Logged(v, []Pool{poolOf("s", 200)}, Signals{Counts: countsOf{}}).Items {
		if it.Source == schemas.Explore {
			got = append(got, it.Propensity)
		}
	}
	if len(got) < 2 || got[0] == 0 || got[0] > 0.1 || got[1] != 0 {
		t.Errorf("propensities %v of the explored items, want a small one, then 0", got)
	}
}

func TestArmShare_IsShareOfUsers(t *testing.T) {
	feeds := Feeds{"home": {ExperimentArms: []Arm{{Feed: "a", Share: 0.25}, {Feed: "b", Share: 0.5}}}, "a": {}, "b": {}}
	for arm, want := range map[string]float64{"": 0.25, "a": 0.25, "b": 0.5} {
		expect.Equal(t, feeds.ArmShares()["home"][arm], want, "share of arm %q", arm)
	}
	expect.Equal(t, feeds.ArmShares()["a"][""], 1, "share without an experiment")
}
