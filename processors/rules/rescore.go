package rules

import (
	"math"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// item is a candidate with its score for a chunk. It points to the candidate to stay small, because items are sorted.
type item struct {
	*Candidate
	rankScore schemas.RankScore
	pool      schemas.Source // source of an exploration draw; "": not a draw
}

// queue holds the items of one source, best first.
type queue struct {
	source schemas.Source
	items  []item
}

// Parts are the parts of a score. The score is their sum.
type Parts struct {
	Pool       schemas.PoolScore
	Affinity   float64 // affinities of the user
	Popularity float64 // save rate of the pin
	Model      float64 // score of the external model
}

// Sum returns the score in the response.
func (p Parts) Sum() schemas.RankScore {
	return schemas.RankScore(float64(p.Pool) + p.Affinity + p.Popularity + p.Model)
}

// rescore returns the items of every source that has a share, best first by the score in the response, ties by pin.
func (f Feed) rescore(pools []Pool, k Known) []queue {
	s := f.scorer(k)
	queues := make([]queue, 0, len(pools))
	for _, p := range pools {
		if f.Share(p.Source) == 0 {
			continue
		}
		items := make([]item, len(p.Candidates))
		for i := range p.Candidates {
			c := &p.Candidates[i]
			items[i] = item{Candidate: c, rankScore: s.parts(c).Sum()}
		}
		bestFirst(items)
		queues = append(queues, queue{source: p.Source, items: items})
	}
	return queues
}

// bestFirst sorts items of distinct pins, best first, ties by pin.
func bestFirst(items []item) { slices.SortFunc(items, compareItems) }

func compareItems(a, b item) int {
	switch {
	case a.rankScore > b.rankScore:
		return -1
	case a.rankScore < b.rankScore:
		return 1
	}
	return strings.Compare(string(a.Pin), string(b.Pin))
}

// scorer adds the current signals to write-time scores. Scores are logarithms: 1 is worth a factor of e in quality, or one
// time constant of age.
type scorer struct {
	feed Feed
	pull pull
	k    Known
}

func (f Feed) scorer(k Known) scorer {
	return scorer{feed: f, pull: pullOf(k.Affinities, f.Affinity), k: k}
}

func (s scorer) parts(c *Candidate) Parts {
	p := Parts{Pool: c.PoolScore, Affinity: s.pull.of(&c.Facets), Model: s.feed.Model * s.k.Model[c.Pin]}
	if s.k.Counts != nil && s.feed.Popularity > 0 {
		p.Popularity = s.feed.Popularity * math.Log(s.k.Counts.Pin(c.Pin).rate()/usualRate)
	}
	return p
}

// The prior for pins without data: one of twenty impressions leads to a save, with the weight of twenty impressions.
const (
	usualRate    = 0.05
	beliefWeight = 20
)

// rate returns the save rate, shrunk towards the usual rate if there are few impressions.
func (c Count) rate() float64 {
	saves, passes := c.split()
	return (usualRate*beliefWeight + saves) / (beliefWeight + saves + passes)
}

// split returns the impressions with and without a save. A save without an impression counts as an impression.
func (c Count) split() (saves, passes float64) {
	return float64(max(c.Saves, 0)), float64(max(c.Impressions-c.Saves, 0))
}

// pull is what each facet adds to a score.
type pull map[schemas.ID]float64

// pullOf divides affinities by the largest one, so that they move the scores of users with few and with many actions equally.
func pullOf(top []schemas.Affinity, strength float64) pull {
	largest := 0.0
	for _, a := range top {
		largest = max(largest, a.Value, -a.Value)
	}
	if largest == 0 || strength == 0 {
		return nil
	}
	p := make(pull, len(top))
	for _, a := range top {
		p[a.Facet] = strength * a.Value / largest
	}
	return p
}

// of returns the highest positive value of the facets plus the lowest negative one. Without one, that part is 0.
func (p pull) of(f *schemas.Facets) float64 {
	if p == nil {
		return 0
	}
	drawn, repelled := 0.0, 0.0
	for id := range f.Followees {
		strength := p[schemas.ID(id)]
		drawn, repelled = max(drawn, strength), min(repelled, strength)
	}
	return drawn + repelled
}
