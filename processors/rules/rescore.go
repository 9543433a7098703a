package rules

import (
	"math"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// item is a candidate as a chunk would show it. It is short, because items are sorted: the candidate stays where it is.
type item struct {
	*Candidate
	score float64        // answered; Score is the write-time one
	pool  schemas.Source // that a lot was drawn for it from; "": it is no lot
}

// queue are the items of one source, best first.
type queue struct {
	source schemas.Source
	items  []item
}

// Parts are what a score is made of: the score is their sum.
type Parts struct {
	WriteTime  float64 // see package score
	Affinity   float64 // what the user cares for
	Popularity float64 // how often those who were shown the pin have saved it
	Model      float64 // what a model says
}

// Sum is the score that is answered.
func (p Parts) Sum() float64 { return p.WriteTime + p.Affinity + p.Popularity + p.Model }

// rescore returns the candidates of every source that has a share as items, best first by the score that is answered;
// ties go by pin.
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
			items[i] = item{Candidate: c, score: s.parts(c).Sum()}
		}
		bestFirst(items)
		queues = append(queues, queue{source: p.Source, items: items})
	}
	return queues
}

// bestFirst puts items of different pins in order, ties by pin.
func bestFirst(items []item) { slices.SortFunc(items, compareItems) }

func compareItems(a, b item) int {
	switch {
	case a.score > b.score:
		return -1
	case a.score < b.score:
		return 1
	}
	return strings.Compare(string(a.Pin), string(b.Pin))
}

// scorer adds to write-time scores what is known now. They are on a log scale: a part of 1 is worth a factor of e in
// quality, or one half-life of age.
type scorer struct {
	feed Feed
	pull pull
	k    Known
}

func (f Feed) scorer(k Known) scorer {
	return scorer{feed: f, pull: pullOf(k.Affinities, f.Affinity), k: k}
}

func (s scorer) parts(c *Candidate) Parts {
	p := Parts{WriteTime: c.Score, Affinity: s.pull.of(&c.Facets), Model: s.feed.Model * s.k.Model[c.Pin]}
	if s.k.Counts != nil && s.feed.Popularity > 0 {
		p.Popularity = s.feed.Popularity * math.Log(s.k.Counts.Pin(c.Pin).rate()/usualRate)
	}
	return p
}

// What is believed of a pin before anything is known: one of twenty who are shown it saves it, and twenty impressions
// say as much as that belief.
const (
	usualRate    = 0.05
	beliefWeight = 20
)

// rate is the share of those who were shown something that saved it, drawn towards the usual rate as far as few were.
func (c Count) rate() float64 {
	saves, passes := c.split()
	return (usualRate*beliefWeight + saves) / (beliefWeight + saves + passes)
}

// split returns the impressions with and without a save. Who saves a pin that was found elsewhere was shown it there.
func (c Count) split() (saves, passes float64) {
	return float64(max(c.Saves, 0)), float64(max(c.Impressions-c.Saves, 0))
}

// pull is what a facet adds to a score.
type pull map[schemas.ID]float64

// pullOf divides affinities by the largest one, so that users with few actions are moved as far as users with many.
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

// of returns the strongest liking of any of the facets plus the strongest aversion.
func (p pull) of(f *schemas.Facets) float64 {
	if p == nil {
		return 0
	}
	drawn, repelled := 0.0, 0.0
	add := func(id schemas.ID) {
		drawn, repelled = max(drawn, p[id]), min(repelled, p[id])
	}
	add(schemas.ID(f.Author))
	add(schemas.ID(f.Board))
	for _, id := range f.Interests {
		add(schemas.ID(id))
	}
	return drawn + repelled
}
