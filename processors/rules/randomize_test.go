package rules

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

// randomFeed is a feed whose caps matter, and its pools. One pin is in both sources.
func randomFeed() (Feed, []Pool) {
	f := Feed{
		Shares: map[schemas.Source]float64{"s": 0.7, "t": 0.2}, DefaultShare: 0.1, ShareWindow: 100,
		Caps: Caps{Window: 3, Author: 1}, Randomize: Randomize{Candidates: 2, Temperature: 0.8},
	}
	candidate := func(n, author int, score schemas.PoolScore) Candidate {
		return Candidate{
			Pin: schemas.PinID(fmt.Sprint("pin:", n)), PoolScore: score, Facets: schemas.Facets{Author: schemas.UserID(fmt.Sprint("user:", author))},
		}
	}
	return f, []Pool{
		{"s", []Candidate{candidate(1, 1, 3), candidate(2, 1, 2.5), candidate(3, 2, 2), candidate(4, 3, 0)}},
		{"t", []Candidate{candidate(3, 2, 9), candidate(5, 2, 8.5), candidate(6, 4, 8)}},
		{"u", []Candidate{candidate(7, 1, -1)}},
	}
}

// bruteForceChoices returns the probability of each candidate for the place after the given items, by source and pin.
func bruteForceChoices(f Feed, pools []Pool, before []schemas.LoggedItem) map[string]float64 {
	for _, author := range []int{f.Caps.Author, 2 * f.Caps.Author, math.MaxInt} {
		admitted, shares := map[schemas.Source][]Candidate{}, 0.0
		for _, p := range pools {
			for _, c := range p.Candidates {
				is := func(it schemas.LoggedItem) bool { return it.Pin == c.Pin }
				near, n := before[max(0, len(before)-f.Caps.Window+1):], 0
				for _, it := range near {
					if it.Author == c.Author {
						n++
					}
				}
				if !slices.ContainsFunc(before, is) && n < author {
					admitted[p.Source] = append(admitted[p.Source], c)
				}
			}
			if len(admitted[p.Source]) > 0 {
				shares += f.Share(p.Source)
			}
		}
		all := map[string]float64{}
		for source, list := range admitted {
			slices.SortFunc(list, func(a, b Candidate) int { return cmp.Compare(b.PoolScore, a.PoolScore) })
			list = list[:min(len(list), f.Randomize.Candidates)]
			sum := 0.0
			for _, c := range list {
				sum += math.Exp(float64(c.PoolScore) / f.Randomize.Temperature)
			}
			for _, c := range list {
				all[string(source)+" "+string(c.Pin)] = f.Share(source) / shares * math.Exp(float64(c.PoolScore)/f.Randomize.Temperature) / sum
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// The logged choices and propensities are exactly those of the policy, and the items occur with these frequencies (chi-square) among
// the visits with the same places before.
func TestRandomize_FrequenciesMatchPropensities(t *testing.T) {
	f, pools := randomFeed()
	counts, expected := map[string]map[string]float64{}, map[string]map[string]float64{}
	for n := range 20_000 {
		logged := f.Logged(Visit{User: "user:me", Limit: 7, Memory: schemas.Memory{Draws: int64(n)}}, pools, Signals{})
		if logged.Policy != schemas.PolicyRandomized || len(logged.Items) != 7 {
			t.Fatalf("policy %q with %d items, want a randomized one with all 7", logged.Policy, len(logged.Items))
		}
		path := ""
		for i, it := range logged.Items {
			want := bruteForceChoices(f, pools, logged.Items[:i])
			if expected[path] == nil {
				expected[path], counts[path] = want, map[string]float64{}
			}
			if len(it.Choices) != len(want) || it.Propensity != it.Choices[it.Choice].Probability || it.Choices[it.Choice].Pin != it.Pin {
				t.Fatalf("after %q: %+v, want the choices %v", path, it, want)
			}
			for _, c := range it.Choices {
				if p := want[string(c.Source)+" "+string(c.Pin)]; math.Abs(p-c.Probability) > 1e-12 {
					t.Fatalf("after %q: probability %v of %s from %s, want %v", path, c.Probability, c.Pin, c.Source, p)
				}
			}
			name := string(it.Source) + " " + string(it.Pin)
			counts[path][name]++
			path += name + "; "
		}
	}
	tested, sum, freedoms := 0, 0.0, 0.0
	for path, of := range counts {
		visits, chi := 0.0, 0.0
		for _, n := range of {
			visits += n
		}
		if visits < 500 || len(expected[path]) == 1 {
			continue
		}
		tested++
		for name, p := range expected[path] {
			chi += (of[name] - visits*p) * (of[name] - visits*p) / (visits * p)
		}
		freedom := float64(len(expected[path]) - 1)
		expect.AtMost(t, chi, freedom+8*math.Sqrt(2*freedom), "chi-square after %q: %v of %v visits", path, of, visits)
		sum, freedoms = sum+chi, freedoms+freedom
	}
	expect.AtLeast(t, tested, 20, "tested places")
	expect.AtMost(t, sum, freedoms+3*math.Sqrt(2*freedoms), "chi-square of all places")
}

// A place has relaxed caps only if no candidate is admissible otherwise.
func TestRandomize_RelaxesCapsOnlyWhereNeeded(t *testing.T) {
	f, pools := randomFeed()
	relaxed := 0
	for n := range 200 {
		v := Visit{User: "user:me", Limit: 2, Memory: schemas.Memory{Draws: int64(n)}}
		if c := f.Make(v, pools, Signals{}); c.Relaxed != NotRelaxed || c.Items[0].Author == c.Items[1].Author {
			t.Fatalf("relaxed %q: %v", c.Relaxed, c.Items)
		}
		if v.Limit = 7; f.Make(v, pools, Signals{}).Relaxed != NotRelaxed {
			relaxed++
		}
	}
	expect.Between(t, relaxed, 1, 199, "relaxed chunks of 200 with all pins: user:1 has three of seven pins")
}

// A shorter chunk is a prefix of a longer one: the visit may have to be shortened to fit in a record.
func TestRandomize_ShorterChunkIsPrefix(t *testing.T) {
	f, pools := randomFeed()
	v := Visit{User: "user:me", Limit: 6, Memory: schemas.Memory{Draws: 3}}
	long := f.Make(v, pools, Signals{})
	v.Limit = 2
	short := f.Make(v, pools, Signals{})
	expect.NoDiff(t, pinsOf(short.Items), pinsOf(long.Items)[:2], "pins of the shorter chunk")
	expect.Equal(t, short.Memory.Draws, 4, "draws")
}

func TestRandomize_Bounds(t *testing.T) {
	for _, r := range []Randomize{{Candidates: 1}, {Candidates: 51, Temperature: 1}, {Candidates: 1, Temperature: math.NaN()}, {Temperature: -1}} {
		f := Default()["plain"]
		f.Randomize = r
		expect.True(t, f.validate() != nil, "%+v is invalid", r)
	}
}
