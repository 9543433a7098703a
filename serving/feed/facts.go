package feed

import (
	"context"
	"maps"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// facts is the current state that one answer has read: the cards of pins, the live edges of the viewer, and the deleted users.
// It also records lookups that found nothing.
type facts struct {
	viewer  visibility.Viewer
	cards   map[schemas.PinID]*schemas.Card // nil: the store has none
	edges   map[schemas.ID]struct{}         // ids toward which all edges of the viewer are known
	deleted map[schemas.UserID]bool         // as read from the store, while users is incomplete
	users   DeletedUsers
	onPage  map[schemas.PinID]bool
}

func newFacts(viewer schemas.UserID, deleted DeletedUsers) *facts {
	f := &facts{
		users: deleted, cards: map[schemas.PinID]*schemas.Card{}, edges: map[schemas.ID]struct{}{},
		deleted: map[schemas.UserID]bool{}, onPage: map[schemas.PinID]bool{},
	}
	f.viewer = visibility.NewViewer(viewer, visibility.Graph{
		Follows: map[schemas.ID]float32{}, Blocks: map[schemas.ID]struct{}{}, BlockedBy: map[schemas.ID]struct{}{},
	}, f)
	return f
}

// Has reports whether a user is known to be deleted.
func (f *facts) Has(user schemas.UserID) bool { return f.users.Has(user) || f.deleted[user] }

// hides reports whether the viewer must not be shown an item that one of the given edges justifies, or whether it is already
// on the page.
func (f *facts) hides(it *schemas.ServedItem, needed visibility.Edges) bool {
	pin := visibility.Pin{PinContent: schemas.PinContent{Facets: *f.facets(it)}, Seen: f.onPage[it.Pin]}
	if c := f.cards[it.Pin]; c != nil {
		pin.Deleted = c.Deleted
	}
	return f.viewer.Hides(&pin, needed) != ""
}

// facets returns the current facets of the pin, or those in the item if the card is not known.
func (f *facts) facets(it *schemas.ServedItem) *schemas.Facets {
	if c := f.cards[it.Pin]; c != nil {
		return &c.Facets
	}
	return &it.Facets
}

// pin returns the current state of the pin of an item.
func (f *facts) pin(it *schemas.ServedItem) Pin {
	if c := f.cards[it.Pin]; c != nil {
		return pinOf(c)
	}
	return pinOf(&schemas.Card{PinVersion: schemas.PinVersion{Pin: it.Pin, PinContent: schemas.PinContent{Facets: it.Facets, Created: it.Created}}})
}

// addEdges records all edges of the viewer toward others.
func (f *facts) addEdges(others []schemas.ID, edges []schemas.Edge) {
	for _, other := range others {
		f.edges[other] = struct{}{}
	}
	for _, e := range edges {
		switch {
		case !e.Live:
		case e.Kind == schemas.FollowEdge:
			f.viewer.Follows[e.Other] = e.Weight
		case e.Kind == schemas.BlockEdge:
			f.viewer.Blocks[e.Other] = struct{}{}
		case e.Kind == schemas.BlockedEdge:
			f.viewer.BlockedBy[e.Other] = struct{}{}
		}
	}
}

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

// DeletedUsers is the set of deleted users that this process holds in memory.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
	// Ready is closed when the set contains every deletion that was published before the process started.
	Ready() <-chan struct{}
}

// unreadUsers replaces a set that is never read.
type unreadUsers struct{}

func (unreadUsers) Has(schemas.UserID) bool { return false }
func (unreadUsers) Ready() <-chan struct{}  { return nil }

// isComplete reports whether the set contains every deletion that was published before the process started.
func isComplete(d DeletedUsers) bool {
	select {
	case <-d.Ready():
		return true
	default:
		return false
	}
}
