package feed

import (
	"context"
	"maps"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// loadFacts reads the missing facts about items from the store. It returns false if the store fails during the call. If the
// store is already unavailable, loadFacts returns true, and the facts read so far must suffice.
//
// The cards are read first: the current facets of a pin determine which edges and authors matter.
func (r *reader) loadFacts(ctx context.Context, items []schemas.ServedItem) bool {
	return r.unavailable || r.loadCards(ctx, items) && r.loadEdges(ctx, items) && r.loadDeleted(ctx, items)
}

func (r *reader) loadCards(ctx context.Context, items []schemas.ServedItem) bool {
	pins := missing(items, r.facts.cards, func(it *schemas.ServedItem) []schemas.PinID { return []schemas.PinID{it.Pin} })
	return load(ctx, r, pins, r.svc.deps.Store.Cards, func(cards map[schemas.PinID]schemas.Card) {
		for _, pin := range pins {
			r.facts.cards[pin] = nil
			if c, ok := cards[pin]; ok {
				r.facts.cards[pin] = &c
			}
		}
	})
}

// load reads the values of keys from the store, unless there are no keys, and passes them to note. It returns false if the
// store fails.
func load[K ~string, T any](ctx context.Context, r *reader, keys []K, read func(context.Context, []K) (T, error), note func(T)) bool {
	if len(keys) == 0 {
		return true
	}
	values, ok := callStore(ctx, r, func(ctx context.Context) (T, error) { return read(ctx, keys) })
	if ok {
		note(values)
	}
	return ok
}

func (r *reader) loadEdges(ctx context.Context, items []schemas.ServedItem) bool {
	if r.user == "" { // no particular user: edges do not matter
		return true
	}
	others := missing(items, r.facts.edges, func(it *schemas.ServedItem) (ids []schemas.ID) {
		for id := range r.facts.facets(it).Followees {
			ids = append(ids, schemas.ID(id))
		}
		return ids
	})
	ofUser := func(ctx context.Context, others []schemas.ID) ([]schemas.Edge, error) {
		return r.svc.deps.Store.Edges(ctx, r.user, others)
	}
	return load(ctx, r, others, ofUser, func(edges []schemas.Edge) { r.facts.addEdges(others, edges) })
}

// loadDeleted queries the store only until this process has read the deleted users, because a store may lag.
func (r *reader) loadDeleted(ctx context.Context, items []schemas.ServedItem) bool {
	if isComplete(r.svc.deps.Deleted) {
		return true
	}
	authors := missing(items, r.facts.deleted, func(it *schemas.ServedItem) []schemas.UserID {
		return []schemas.UserID{r.facts.facets(it).Author}
	})
	return load(ctx, r, authors, r.svc.deps.Store.DeletedUsers, func(deleted map[schemas.UserID]bool) {
		for _, user := range authors {
			r.facts.deleted[user] = deleted[user]
		}
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
