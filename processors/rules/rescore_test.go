package rules

import (
	"math"
	"testing"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestRescore(t *testing.T) {
	pools := []Pool{{"s", []Candidate{
		{Pin: "pin:1", PoolScore: 10, Facets: schemas.Facets{Author: "user:a", Board: "board:z", Language: "den"}},
		{Pin: "pin:2", PoolScore: 9.5, Facets: schemas.Facets{Author: "user:b", Interests: []schemas.InterestID{"interest:x"}}},
		{Pin: "pin:0", PoolScore: 9, Facets: schemas.Facets{Author: "user:c", Language: "DE-at"}},
	}}}
	top := []schemas.Affinity{{Facet: "interest:x", Value: 4}, {Facet: "user:b", Value: 2}, {Facet: "board:z", Value: -1}}
	languages := []schemas.Affinity{{Facet: "language:de", Value: 3}, {Facet: "language:pt", Value: 1}, {Facet: "language:den", Value: -9}}
	counts := countsOf{"pin:0": {Impressions: 180, Saves: 29}, "pin:1": {Impressions: 20}, "pin:2": {Saves: 1}}
	type scored struct {
		Pin   schemas.PinID
		Score float64
	}
	for name, c := range map[string]struct {
		feed Feed
		k    Signals
		want []scored
	}{
		"no signals":           {Feed{AffinityWeight: 1, PopularityWeight: 1, ModelWeight: 1}, Signals{}, []scored{{"pin:1", 10}, {"pin:2", 9.5}, {"pin:0", 9}}},
		"zero weights":         {Feed{}, Signals{Affinities: schemas.Affinities{Top: top}, Counts: counts, Model: map[schemas.PinID]float64{"pin:0": 9}}, []scored{{"pin:1", 10}, {"pin:2", 9.5}, {"pin:0", 9}}},
		"highest plus lowest":  {Feed{AffinityWeight: 1}, Signals{Affinities: schemas.Affinities{Top: top}}, []scored{{"pin:2", 10.5}, {"pin:1", 9.75}, {"pin:0", 9}}},
		"ties by pin":          {Feed{AffinityWeight: 4}, Signals{Affinities: schemas.Affinities{Top: top}}, []scored{{"pin:2", 13.5}, {"pin:0", 9}, {"pin:1", 9}}},
		"only aversions":       {Feed{AffinityWeight: 1}, Signals{Affinities: schemas.Affinities{Top: top[2:]}}, []scored{{"pin:2", 9.5}, {"pin:0", 9}, {"pin:1", 9}}},
		"zero affinity adds 0": {Feed{AffinityWeight: 1}, Signals{Affinities: schemas.Affinities{Top: []schemas.Affinity{{Facet: "user:a"}}}}, []scored{{"pin:1", 10}, {"pin:2", 9.5}, {"pin:0", 9}}},
		// (prior + saves) / (prior + impressions), relative to the prior rate of one in twenty: 30/200, 1/40, 2/21
		"save rate": {Feed{PopularityWeight: 2}, Signals{Counts: counts},
			[]scored{{"pin:0", 9 + 2*math.Log(3)}, {"pin:2", 9.5 + 2*math.Log(40.0/21)}, {"pin:1", 10 - 2*math.Log(2)}}},
		"share of a language":            {Feed{LanguageWeight: 2}, Signals{Affinities: schemas.Affinities{Top: languages}}, []scored{{"pin:0", 10.5}, {"pin:1", 10}, {"pin:2", 9.5}}},
		"languages scale no other facet": {Feed{AffinityWeight: 1}, Signals{Affinities: schemas.Affinities{Top: append(languages, top...)}}, []scored{{"pin:2", 10.5}, {"pin:1", 9.75}, {"pin:0", 9}}},
		"a model":                        {Feed{ModelWeight: 0.5}, Signals{Model: map[schemas.PinID]float64{"pin:0": 4}}, []scored{{"pin:0", 11}, {"pin:1", 10}, {"pin:2", 9.5}}},
	} {
		c.feed.DefaultShare = 1
		got := convert.All(c.feed.rescore(pools, c.k)[0].items, func(it item) scored {
			return scored{it.Pin, math.Round(float64(it.rankScore)*1e9) / 1e9}
		})
		for i := range c.want {
			c.want[i].Score = math.Round(c.want[i].Score*1e9) / 1e9
		}
		expect.NoDiff(t, got, c.want, "%s", name)
	}
}
