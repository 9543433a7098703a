package feed

import (
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

// DeletedUsers is the set of deleted users that this process holds in memory.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
	// Ready is closed when the set contains every deletion that was published before the process started.
	Ready() <-chan struct{}
}

// unreadUsers replaces a set that is never read.
type unreadUsers struct{}

func (unreadUsers) Has(schemas.UserID) bool { return false }

func (unreadUsers) Ready() <-chan struct{} { return nil }

// isComplete reports whether the set contains every deletion that was published before the process started.
func isComplete(d DeletedUsers) bool {
	select {
	case <-d.Ready():
		return true
	default:
		return false
	}
}
