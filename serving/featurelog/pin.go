package featurelog

import (
	"math"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// pinHistory is the data about a pin, in any order. A nil pinHistory has no data.
type pinHistory struct{ versions []arrivedPin }

type arrivedPin struct {
	*schemas.PinAttributes
	arrived schemas.Micros
}

// at returns the data of the pin, as feature.Store defines it, in a store with all records that arrived up to by.sure
// is false if no record had arrived. The store may then have the pin from records that the topics have deleted.
func (h *pinHistory) at(by schemas.Micros) (own feature.PinAttributes, known, sure bool) {
	if h == nil {
		return feature.PinAttributes{}, false, false
	}
	var newest *schemas.PinAttributes
	for _, p := range h.versions {
		if p.arrived <= by && (newest == nil || p.Version > newest.Version) {
			newest = p.PinAttributes
		}
	}
	if newest == nil || newest.Deleted {
		return feature.PinAttributes{}, false, newest != nil
	}
	return feature.PinAttributes{Facets: newest.Facets, Attributes: newest.Attributes, Embedding: newest.Embedding}, true, true
}

// deleted returns when the deletion of the pin arrived, or the maximum time if it did not.
func (h *pinHistory) deleted() schemas.Micros {
	at := schemas.Micros(math.MaxInt64)
	if h == nil {
		return at
	}
	for _, p := range h.versions {
		if p.Deleted {
			at = min(at, p.arrived)
		}
	}
	return at
}
