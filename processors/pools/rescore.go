package pools

import (
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// rescore returns the candidates as items, best first by the score that is answered:
//
//	score = write-time score + strength · pull
//	pull  = the strongest affinity for any of the pin's facets + the strongest aversion, each from -1 to 1
//
// An affinity is divided by the largest one of the user, so that users with few actions are moved as far as users with
// many. The write-time score is on a log scale: a pull of 1 at a strength of 1 is worth a factor of e in quality, or one
// half-life of age. Ties go by pin.
func rescore(all []candidate, top []schemas.Affinity, strength float64) []item {
	pull := pullOf(top, strength)
	items := make([]item, len(all))
	for i := range all {
		c := &all[i]
		items[i] = item{pin: c.pin, score: c.score + pull.of(&c.Facets), created: c.created, Facets: c.Facets}
	}
	slices.SortFunc(items, func(a, b item) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return strings.Compare(string(a.pin), string(b.pin))
	})
	return items
}

// pull is what a facet adds to a score.
type pull map[schemas.ID]float64

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
