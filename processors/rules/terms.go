package rules

import (
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

// Signals holds the current signals other than the pools. A rule whose signal is missing adds nothing.
type Signals struct {
	Affinities schemas.Affinities        // of the user; the zero value: none
	Counts     Counts                    // nil: unknown
	Model      map[schemas.PinID]float64 // score of an external model, by pin
	Vectors    map[schemas.PinID]Vector  // directions of embeddings, by pin; needed only if Feed.Spacing is enabled
}

// Counts returns how often pins were shown and saved.
type Counts interface {
	Pin(pin schemas.PinID) Count
	Author(author schemas.UserID) Count // sum over the author's pins
}

// Count is the number of impressions and saves of a pin or an author.
type Count struct{ Impressions, Saves int64 }

// term adds a current signal to write-time scores. Scores are logarithms: a difference of 1 is a factor of e in quality, or
// one time constant of age.
type term struct {
	name string
	of   func(*Candidate) float64 // nil: 0
}

// UsesAffinities reports whether a rule needs Signals.Affinities.
func (f Feed) UsesAffinities() bool { return f.AffinityWeight > 0 || f.LanguageWeight > 0 }

// terms returns the terms of a score, in the order of their addition.
func (f Feed) terms(k Signals) []term {
	all := []term{{name: "affinity"}, {name: "popularity"}, {name: "model"}, {name: "language"}}
	if weights := newFacetWeights(k.Affinities.Top, f.AffinityWeight); weights != nil {
		all[0].of = func(c *Candidate) float64 { return weights.sum(&c.Facets) }
	}
	if k.Counts != nil && f.PopularityWeight > 0 {
		all[1].of = func(c *Candidate) float64 { return f.PopularityWeight * math.Log(k.Counts.Pin(c.Pin).rate()/priorRate) }
	}
	if k.Model != nil {
		all[2].of = func(c *Candidate) float64 { return f.ModelWeight * k.Model[c.Pin] }
	}
	if shares := languageShares(k.Affinities.Top); f.LanguageWeight > 0 && shares != nil {
		all[3].of = func(c *Candidate) float64 { return f.LanguageWeight * shares[c.PrimaryLanguage()] }
	}
	return all
}

// languageShares returns each language's share of the positive affinities for languages, or nil if there are none.
func languageShares(top []schemas.Affinity) (shares map[string]float64) {
	sum := 0.0
	for _, a := range top {
		if language, ok := schemas.LanguageOf(a.Facet); ok && a.Value > 0 {
			if shares == nil {
				shares = map[string]float64{}
			}
			shares[language] = a.Value
			sum += a.Value
		}
	}
	for language := range shares {
		shares[language] /= sum
	}
	return shares
}

// rankScore returns the score in the response.
func rankScore(c *Candidate, terms []term) schemas.RankScore {
	sum := float64(c.PoolScore)
	for _, t := range terms {
		if t.of != nil {
			sum += t.of(c)
		}
	}
	return schemas.RankScore(sum)
}

// parts returns the value of each term by its name.
func parts(c *Candidate, terms []term) map[string]float64 {
	all := make(map[string]float64, len(terms))
	for _, t := range terms {
		all[t.name] = 0
		if t.of != nil {
			all[t.name] = t.of(c)
		}
	}
	return all
}

// The prior for pins without data: one of twenty impressions leads to a save, with the weight of twenty impressions.
const (
	priorRate   = 0.05
	priorWeight = 20
)

// rate returns the save rate, shrunk toward the prior rate if there are few impressions.
func (c Count) rate() float64 {
	saves, passes := c.split()
	return (priorRate*priorWeight + saves) / (priorWeight + saves + passes)
}

// split returns the impressions with and without a save. A save without an impression counts as an impression.
func (c Count) split() (saves, passes float64) {
	return float64(max(c.Saves, 0)), float64(max(c.Impressions-c.Saves, 0))
}

// facetWeights has the addition of each facet to a score.
type facetWeights map[schemas.ID]float64

// newFacetWeights divides affinities by the largest one. Therefore users with few actions get weights as large as others.
func newFacetWeights(top []schemas.Affinity, strength float64) facetWeights {
	largest := 0.0
	for _, a := range top {
		if _, isLanguage := schemas.LanguageOf(a.Facet); !isLanguage {
			largest = max(largest, a.Value, -a.Value)
		}
	}
	if largest == 0 || strength == 0 {
		return nil
	}
	w := make(facetWeights, len(top))
	for _, a := range top {
		w[a.Facet] = strength * a.Value / largest
	}
	return w
}

// sum returns the highest positive weight of the facets plus the lowest negative one. A missing part is 0.
func (w facetWeights) sum(f *schemas.Facets) float64 {
	highest, lowest := 0.0, 0.0
	for id := range f.Followees {
		weight := w[schemas.ID(id)]
		highest, lowest = max(highest, weight), min(lowest, weight)
	}
	return highest + lowest
}
