package rules

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// The draws have the mean and the variance of the distribution: a/(a+b) and ab/((a+b)²(a+b+1)).
func TestBeta_MeanAndVariance(t *testing.T) {
	for _, c := range []struct {
		believed float64
		count    Count
	}{
		{0.05, Count{}}, {0.05, Count{Impressions: 10}}, {0.5, Count{Impressions: 1000, Saves: 300}},
		{0.9, Count{Impressions: 3, Saves: 3}}, {0.02, Count{Impressions: 5, Saves: 40}},
	} {
		const n = 20000
		sum, squares := 0.0, 0.0
		for i := range n {
			x := newDrawer(uint64(i)*golden, nil).beta(7, c.believed, c.count)
			if !(x >= 0 && x <= 1) {
				t.Fatalf("%+v: drew %v", c, x)
			}
			sum, squares = sum+x, squares+x*x
		}
		saves, passes := c.count.split()
		a, b := c.believed*priorWeight+saves, (1-c.believed)*priorWeight+passes
		mean, variance := a/(a+b), a*b/((a+b)*(a+b)*(a+b+1))
		gotMean := sum / n
		expect.Near(t, gotMean, mean, 5*math.Sqrt(variance/n), "mean of %+v", c)
		expect.Near(t, squares/n-gotMean*gotMean, variance, 0.1*variance, "variance of %+v", c)
	}
}

func TestGamma_NonPositiveShapeIsZero(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, shape := range []float64{0, -1, math.NaN()} {
		expect.Equal(t, gamma(rng, shape), 0, "shape %v: drew", shape)
	}
}

func exploring() Feed {
	return Feed{
		Shares: map[schemas.Source]float64{"s": 1, schemas.Explore: 1}, ShareWindow: 100, Explore: Explore{PinImpressions: 10, AuthorImpressions: 50},
	}
}

// Exploration draws for new pins and for pins of new authors, and for no others.
func TestExplore_OnlyNewPinsAndAuthors(t *testing.T) {
	counts := countsOf{
		"pin:s-000": {Impressions: 10}, "user:s-0": {Impressions: 50}, // neither is new
		"pin:s-001": {Impressions: 9}, "user:s-1": {Impressions: 50}, // a new pin
		"pin:s-002": {Impressions: 10}, "user:s-2": {Impressions: 49}, // a new author
	}
	c := exploring().Make(Visit{User: "user:me", Limit: 10}, []Pool{poolOf("s", 3)}, Signals{Counts: counts})
	got := map[schemas.PinID]schemas.Source{}
	for _, it := range c.Items {
		got[it.Pin] = it.Source
		if it.Source == schemas.Explore && !(it.RankScore > 0 && it.RankScore < 1) {
			t.Errorf("%s: score %v, want its draw", it.Pin, it.RankScore)
		}
		expect.Equal(t, it.Pool, map[schemas.Source]schemas.Source{schemas.Explore: "s"}[it.Source], "%s of %s: pool", it.Pin, it.Source)
	}
	expect.Equal(t, got["pin:s-000"], "s", "source of pin:s-000")
	expect.Equal(t, len(got), 3, "items")
	expect.True(t, got["pin:s-001"] == schemas.Explore || got["pin:s-002"] == schemas.Explore, "got %v, want one explored pin", got)
	expect.Equal(t, c.Memory.Draws, 1, "draws")
}

func TestExplore_OffWithoutCountsOrShare(t *testing.T) {
	silent := exploring()
	delete(silent.Shares, schemas.Explore)
	silent.DefaultShare = 1
	for name, c := range map[string]Chunk{
		"no counts": exploring().Make(Visit{User: "user:me", Limit: 3}, []Pool{poolOf("s", 3)}, Signals{}),
		"no share":  silent.Make(Visit{User: "user:me", Limit: 3}, []Pool{poolOf("s", 3)}, Signals{Counts: countsOf{}}),
	} {
		for _, it := range c.Items {
			expect.Equal(t, it.Source, "s", "source of %s of %s", name, it.Pin)
		}
		expect.Equal(t, len(c.Items), 3, "%s: items", name)
		expect.Equal(t, c.Memory.Draws, 0, "%s: draws", name)
	}
}

// The draw of a pin depends only on the user, the number of draws, and the pin.
func TestExplore_DrawsAreIndependentOfOtherCandidates(t *testing.T) {
	drawsOf := func(user schemas.UserID, draws int64, n int) map[schemas.PinID]schemas.RankScore {
		v := Visit{User: user, Memory: schemas.Memory{Draws: draws}}
		q := exploring().explore(v.seed(), exploring().rescore([]Pool{poolOf("s", n)}, Signals{}), countsOf{})
		all := map[schemas.PinID]schemas.RankScore{}
		for _, it := range q.items {
			all[it.Pin] = it.rankScore
		}
		return all
	}
	few, many := drawsOf("user:me", 3, 5), drawsOf("user:me", 3, 50)
	for pin, draw := range few {
		expect.Equal(t, many[pin], draw, "draw of %s among 50 candidates, as among 5", pin)
	}
	later, other := drawsOf("user:me", 4, 5), drawsOf("user:other", 3, 5)
	for pin, draw := range few {
		expect.False(t, later[pin] == draw || other[pin] == draw, "%s: the same draw %v in another visit", pin, draw)
	}
}

// Ten new authors have pins with different save rates. The best ones are shown most, and the others not indefinitely.
func TestExplore_PrefersHighSaveRates(t *testing.T) {
	const rounds = 4000
	rng := rand.New(rand.NewPCG(3, 4))
	counts, shown := countsOf{}, make([]int, 10)
	f := exploring()
	f.Explore = Explore{PinImpressions: rounds, AuthorImpressions: rounds}
	queues := f.rescore([]Pool{poolOf("s", 10)}, Signals{})
	for round := range rounds {
		v := Visit{User: "user:me", Memory: schemas.Memory{Draws: int64(round)}}
		first := f.explore(v.seed(), queues, counts).items[0]
		var arm int
		must.Get(fmt.Sscanf(string(first.Pin), "pin:s-%d", &arm))(t)
		shown[arm]++
		for _, id := range []schemas.ID{schemas.ID(first.Pin), schemas.ID(first.Author)} {
			c := counts[id]
			c.Impressions++
			if rng.Float64() < float64(arm)/20 { // 0 to 45 percent
				c.Saves++
			}
			counts[id] = c
		}
	}
	expect.AtLeast(t, shown[9]+shown[8], rounds*6/10, "views of the last two, of %v", shown)
	expect.AtMost(t, shown[0], rounds/50, "views of the first, of %v", shown)
}
