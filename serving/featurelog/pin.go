package featurelog

import (
	"math"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// pinHistory is the data about a pin, in any order. A nil pinHistory has no data.
type pinHistory struct {
	cards []arrivedCard
	own   []arrivedAttributes
}

type arrivedCard struct {
	*schemas.Card
	arrived schemas.Micros
}

type arrivedAttributes struct {
	*schemas.PinAttributes
	arrived schemas.Micros
}

// AddCard adds a record of pin-cards.
func (v *Verifier) AddCard(c *schemas.Card, arrived schemas.Micros) {
	if h := v.pins[c.Pin]; h != nil {
		h.cards = append(h.cards, arrivedCard{c, arrived})
	}
}

// AddPin adds a record of pin-attributes.
func (v *Verifier) AddPin(p *schemas.PinAttributes, arrived schemas.Micros) {
	if h := v.pins[p.Pin]; h != nil {
		h.own = append(h.own, arrivedAttributes{p, arrived})
	}
}

// SetComplete declares that pin-cards and pin-attributes are still complete. A pin without records is then unknown to
// the store.
func (v *Verifier) SetComplete() { v.complete = true }

// at returns the data of the pin, as feature.Store defines it, in a store with all records that arrived up to by.sure
// is false if no record had arrived. The store may then have the pin from records that the topics have deleted.
func (h *pinHistory) at(by schemas.Micros) (own feature.PinAttributes, known, sure bool) {
	if h == nil {
		return feature.PinAttributes{}, false, false
	}
	var card *schemas.Card
	for _, c := range h.cards {
		if c.arrived <= by && (card == nil || c.Version > card.Version) {
			card = c.Card
		}
	}
	if card == nil || card.Deleted {
		return feature.PinAttributes{}, false, card != nil
	}
	own.Facets = card.Facets
	var newest *schemas.PinAttributes
	for _, p := range h.own {
		if p.arrived <= by && (newest == nil || p.Version > newest.Version) {
			newest = p.PinAttributes
		}
	}
	if newest != nil {
		own.Attributes, own.Embedding = newest.Attributes, newest.Embedding
	}
	return own, true, true
}

// deleted returns when the deletion of the pin arrived, or the maximum time if it did not.
func (h *pinHistory) deleted() schemas.Micros {
	at := schemas.Micros(math.MaxInt64)
	if h == nil {
		return at
	}
	for _, c := range h.cards {
		if c.Deleted {
			at = min(at, c.arrived)
		}
	}
	return at
}

func (h *pinHistory) arrivals() []schemas.Micros {
	var all []schemas.Micros
	for _, c := range h.cards {
		all = append(all, c.arrived)
	}
	for _, p := range h.own {
		all = append(all, p.arrived)
	}
	return all
}
