package feed

import (
	"cmp"
	"maps"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// facts is the current state as far as one answer knows it: the cards, the user's edges, and the deleted users. A value that
// was read and does not exist counts as known.
type facts struct {
	user  schemas.UserID                   // "": no particular user
	cards map[schemas.PinID]*schemas.Card  // nil: the store has none
	edges map[schemas.ID]map[register]bool // live or dead; no register: the edge never existed
	gone  map[schemas.UserID]bool          // as read from the store, while deleted is incomplete

	deleted DeletedUsers
}

type register = schemas.EdgeKind

func newFacts(user schemas.UserID, deleted DeletedUsers) facts {
	return facts{
		user: user, deleted: deleted, cards: map[schemas.PinID]*schemas.Card{},
		edges: map[schemas.ID]map[register]bool{}, gone: map[schemas.UserID]bool{},
	}
}

// isDeleted reports whether a user is known to be deleted.
func (f *facts) isDeleted(user schemas.UserID) bool { return f.deleted.Has(user) || f.gone[user] }

// facets returns the current facets of the pin, or those in the item if the card is not known.
func (f *facts) facets(it *schemas.ServedItem) *schemas.Facets {
	if c := f.cards[it.Pin]; c != nil {
		return &c.Facets
	}
	return &it.Facets
}

// hides reports whether the item must not be in the user's feed, whatever its source: it is withheld, or the pin is the
// user's own.
func (f *facts) hides(it *schemas.ServedItem) bool {
	return f.facets(it).Author == f.user && f.user != "" || f.withholds(it)
}

// withholds reports whether the user must not be shown the item anywhere. This is so if the pin or its author is deleted,
// the author or the user blocks the other, or the user blocks the board or an interest.
func (f *facts) withholds(it *schemas.ServedItem) bool {
	card, facets := f.cards[it.Pin], f.facets(it)
	if card != nil && card.Deleted || f.isDeleted(facets.Author) {
		return true
	}
	return f.edges[schemas.ID(facets.Author)][schemas.BlockedEdge] ||
		anyOf(facets, func(id schemas.ID) bool { return f.edges[id][schemas.BlockEdge] })
}

// justifies reports whether the user may still be shown a materialized item. An item that an edge delivered needs a live
// edge to its author, its board or one of its interests, of any source. An exploration item counts as an item of its pool.
// If its pool is not known, it needs a live edge only if there has ever been an edge. All other items are justified.
func (f *facts) justifies(it *schemas.ServedItem) bool {
	facets := f.facets(it)
	followed := func(id schemas.ID) bool { return f.edges[id][schemas.FollowEdge] }
	switch {
	case cameByEdge(it):
		return anyOf(facets, followed)
	case cmp.Or(it.Pool, it.Source) == schemas.Explore:
		unfollowed := func(id schemas.ID) bool {
			live, known := f.edges[id][schemas.FollowEdge]
			return known && !live
		}
		return anyOf(facets, followed) || !anyOf(facets, unfollowed)
	}
	return true
}

// cameByEdge reports whether an edge delivered the item to its pool.
func cameByEdge(it *schemas.ServedItem) bool {
	pool := cmp.Or(it.Pool, it.Source)
	return pool == schemas.Following || pool == schemas.FromInterest
}

// anyOf reports whether ok holds for the author, the board or an interest.
func anyOf(f *schemas.Facets, ok func(schemas.ID) bool) bool {
	for id := range f.Followees {
		if ok(schemas.ID(id)) {
			return true
		}
	}
	return false
}

// item returns the item for an answer, with the current state of the pin.
func (f *facts) item(it *schemas.ServedItem, isNew bool) Item {
	pin := schemas.Card{PinVersion: schemas.PinVersion{Pin: it.Pin, Facets: it.Facets, Created: it.Created}}
	if c := f.cards[it.Pin]; c != nil {
		pin = *c
	}
	return Item{Pin: pinOf(&pin), New: isNew, Source: it.Source, Score: it.Score}
}

// newPins returns the pins of items whose cards are not known.
func (f *facts) newPins(items []schemas.ServedItem) []schemas.PinID {
	return missing(items, f.cards, func(it *schemas.ServedItem) []schemas.PinID { return []schemas.PinID{it.Pin} })
}

// newOthers returns the ids towards which the user's edges are not known. It requires the cards.
func (f *facts) newOthers(items []schemas.ServedItem) []schemas.ID {
	return missing(items, f.edges, func(it *schemas.ServedItem) (ids []schemas.ID) {
		for id := range f.facets(it).Followees {
			ids = append(ids, schemas.ID(id))
		}
		return ids
	})
}

// newAuthors returns the authors whose deletion state is not known. It requires the cards.
func (f *facts) newAuthors(items []schemas.ServedItem) []schemas.UserID {
	return missing(items, f.gone, func(it *schemas.ServedItem) []schemas.UserID {
		return []schemas.UserID{f.facets(it).Author}
	})
}

// missing returns the sorted, distinct keys of the items that are not in known.
func missing[K ~string, V any](items []schemas.ServedItem, known map[K]V, of func(*schemas.ServedItem) []K) []K {
	wanted := map[K]bool{}
	for i := range items {
		for _, k := range of(&items[i]) {
			if _, ok := known[k]; !ok && k != "" {
				wanted[k] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(wanted))
}

func (f *facts) addCards(asked []schemas.PinID, cards map[schemas.PinID]schemas.Card) {
	for _, pin := range asked {
		f.cards[pin] = nil
		if c, ok := cards[pin]; ok {
			f.cards[pin] = &c
		}
	}
}

func (f *facts) addEdges(asked []schemas.ID, edges []schemas.Edge) {
	for _, other := range asked {
		f.edges[other] = nil
	}
	for _, e := range edges {
		if f.edges[e.Other] == nil {
			f.edges[e.Other] = map[register]bool{}
		}
		f.edges[e.Other][e.Kind] = e.Live
	}
}

func (f *facts) addGone(asked []schemas.UserID, gone map[schemas.UserID]bool) {
	for _, user := range asked {
		f.gone[user] = gone[user]
	}
}
