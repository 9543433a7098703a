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
	if len(pins) == 0 {
		return true
	}
	cards, ok := callStore(ctx, r, func(ctx context.Context) (map[schemas.PinID]schemas.Card, error) {
		return r.svc.deps.Store.Cards(ctx, pins)
	})
	if !ok {
		return false
	}
	for _, pin := range pins {
		r.facts.cards[pin] = nil
		if c, ok := cards[pin]; ok {
			r.facts.cards[pin] = &c
		}
	}
	return true
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
	if len(others) == 0 {
		return true
	}
	edges, ok := callStore(ctx, r, func(ctx context.Context) ([]schemas.Edge, error) {
		return r.svc.deps.Store.Edges(ctx, r.user, others)
	})
	if ok {
		r.facts.addEdges(others, edges)
	}
	return ok
}

// loadDeleted queries the store only until this process has read the deleted users, because a store may lag.
func (r *reader) loadDeleted(ctx context.Context, items []schemas.ServedItem) bool {
	if isComplete(r.svc.deps.Deleted) {
		return true
	}
	authors := missing(items, r.facts.deleted, func(it *schemas.ServedItem) []schemas.UserID {
		return []schemas.UserID{r.facts.facets(it).Author}
	})
	if len(authors) == 0 {
		return true
	}
	deleted, ok := callStore(ctx, r, func(ctx context.Context) (map[schemas.UserID]bool, error) {
		return r.svc.deps.Store.DeletedUsers(ctx, authors)
	})
	if !ok {
		return false
	}
	for _, user := range authors {
		r.facts.deleted[user] = deleted[user]
	}
	return true
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
