// Package visibility decides whether a pin is visible to a user. The pools and the generator apply it to candidates, and the
// feed service to the items of a response. The functions are pure: they depend only on their arguments.
package visibility

import (
	"cmp"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Graph holds the live follows and blocks of a user.
type Graph struct {
	Follows   map[schemas.ID]float32 // followee → weight of the edge
	Blocks    map[schemas.ID]struct{}
	BlockedBy map[schemas.ID]struct{} // users who block the user
}

// DeletedUsers is a set of deleted users.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
}

// GrowingDeletedUsers is the set of deleted users of a process. It must be safe for concurrent use. topics.DeletedUsers
// implements it.
type GrowingDeletedUsers interface {
	DeletedUsers
	Len() int                                    // number of users; it never decreases
	Note(user schemas.UserID, at schemas.Micros) // adds a user before the record on the topic is read
}

// Viewer is the state of a user that determines which pins are visible.
type Viewer struct {
	User schemas.UserID // "": no pin is the viewer's own
	Graph
	Deleted     DeletedUsers
	Expired     schemas.Micros // pins created before it have expired
	SeenTrimmed schemas.Micros // pins created before it may have been shown: their seen rows were trimmed
}

// NewViewer returns a viewer for whom no pin has expired and no seen row was trimmed.
func NewViewer(user schemas.UserID, g Graph, deleted DeletedUsers) Viewer {
	return Viewer{User: user, Graph: g, Deleted: deleted, Expired: math.MinInt64, SeenTrimmed: math.MinInt64}
}

// Pin is the state of a pin that determines to whom it is visible.
type Pin struct {
	schemas.PinContent      // of its highest known version
	Seen               bool // the viewer was shown the pin before
}

// Edges is a set of edges from a viewer to the facets of a pin. A live one justifies the pin.
type Edges uint8

// The edges. The zero value means that a pin needs no justification.
const (
	AuthorOrBoard Edges = 1 << iota
	Interest
)

// CandidateEdges returns the edges that justify a candidate of a source.
func CandidateEdges(source schemas.Source) Edges {
	switch source {
	case schemas.Following:
		return AuthorOrBoard
	case schemas.FromInterest:
		return Interest
	}
	return 0
}

// ShownEdges returns the edges that justify an item that was shown before: those of any source, if an edge delivered it to
// its pool.
func ShownEdges(it *schemas.ServedItem) Edges {
	if CandidateEdges(cmp.Or(it.Pool, it.Source)) == 0 {
		return 0
	}
	return AuthorOrBoard | Interest
}

// Hides returns the reason why a pin is hidden from the viewer, or "" if it is visible. needed are the edges of which one must
// be live. The first reason that applies is returned. Seen is the last one, so a caller needs to look it up only if no other
// reason applies.
func (v *Viewer) Hides(p *Pin, needed Edges) schemas.Reason {
	switch {
	case p.Created < v.SeenTrimmed:
		return schemas.ReasonSeenTrimmed
	case p.Created < v.Expired:
		return schemas.ReasonExpired
	case v.Deleted.Has(p.Author):
		return schemas.ReasonAuthorDeleted
	case p.Deleted:
		return schemas.ReasonDeleted
	case p.Author == v.User && v.User != "":
		return schemas.ReasonOwn
	case v.blocks(&p.Facets):
		return schemas.ReasonBlock
	case needed != 0 && !v.follows(&p.Facets, needed):
		return schemas.ReasonNoEdge
	case p.Seen:
		return schemas.ReasonSeen
	}
	return ""
}

func (g *Graph) blocks(f *schemas.Facets) bool {
	return len(g.appendBlocked(make([]schemas.ID, 0, 2), f)) > 0 // not on the heap
}

// BlockedIDs returns the ids whose blocks hide a pin: the author if either side blocks the other, and the board and the
// interests that the user blocks.
func (g *Graph) BlockedIDs(f *schemas.Facets) []schemas.ID { return g.appendBlocked(nil, f) }

func (g *Graph) appendBlocked(ids []schemas.ID, f *schemas.Facets) []schemas.ID {
	if len(g.Blocks) == 0 && len(g.BlockedBy) == 0 {
		return ids
	}
	if has(g.Blocks, f.Author) || has(g.BlockedBy, f.Author) {
		ids = append(ids, schemas.ID(f.Author))
	}
	if has(g.Blocks, f.Board) {
		ids = append(ids, schemas.ID(f.Board))
	}
	for _, id := range f.Interests {
		if has(g.Blocks, id) {
			ids = append(ids, schemas.ID(id))
		}
	}
	return ids
}

// follows reports whether one of the needed edges is live.
func (g *Graph) follows(f *schemas.Facets, needed Edges) bool {
	if needed&AuthorOrBoard != 0 && (has(g.Follows, f.Author) || has(g.Follows, f.Board)) {
		return true
	}
	return needed&Interest != 0 && slices.ContainsFunc(f.Interests, func(id schemas.InterestID) bool { return has(g.Follows, id) })
}

func has[T ~string, V any](set map[schemas.ID]V, id T) bool {
	_, ok := set[schemas.ID(id)]
	return ok
}
