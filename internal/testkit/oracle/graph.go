package oracle

import (
	"cmp"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// edge holds the two registers of a pair: one for follow and unfollow, one for block and unblock.
type edge struct{ follow, block register }

// register holds the current winner of a register; nil if there was no event.
type register struct{ last *schemas.Event }

func (p *Product) edge(user schemas.UserID, other schemas.ID) *edge {
	if p.edges[user] == nil {
		p.edges[user] = map[schemas.ID]*edge{}
	}
	if p.edges[user][other] == nil {
		p.edges[user][other] = &edge{}
	}
	return p.edges[user][other]
}

func (e *edge) apply(f *schemas.FollowEvent) {
	switch f.Verb {
	case schemas.Follow, schemas.Unfollow:
		e.follow.apply(&f.Event, schemas.Unfollow)
	case schemas.Block, schemas.Unblock:
		e.block.apply(&f.Event, schemas.Block)
	}
}

// apply sets the event as the winner if it is later. At the same time, the stronger verb wins.
func (r *register) apply(e *schemas.Event, stronger schemas.Verb) {
	switch {
	case r.last == nil:
		r.last = e
	case r.last.ID == e.ID: // a repeat: the first body counts
	case e.Time > r.last.Time, e.Time == r.last.Time && e.Verb == stronger && r.last.Verb != stronger:
		r.last = e
	}
}

func (r *register) is(v schemas.Verb) bool { return r.last != nil && r.last.Verb == v }

// Follows reports whether the user follows a user, board or interest, and the follow is within the cap of followees.
func (p *Product) Follows(user schemas.UserID, other schemas.ID) bool {
	e := p.edges[user][other]
	if e == nil || !e.follow.is(schemas.Follow) || p.cfg.MaxFollowees == 0 {
		return e != nil && e.follow.is(schemas.Follow)
	}
	earlier := 0
	for id, o := range p.edges[user] {
		if !o.follow.is(schemas.Follow) || p.deleted(schemas.UserID(id)) {
			continue
		}
		if c := cmp.Compare(o.follow.last.Time, e.follow.last.Time); c < 0 || c == 0 && id < other {
			earlier++
		}
	}
	return earlier < p.cfg.MaxFollowees
}

// Blocks reports whether the user blocks a user, board or interest.
func (p *Product) Blocks(user schemas.UserID, other schemas.ID) bool {
	e := p.edges[user][other]
	return e != nil && e.block.is(schemas.Block)
}

// Edges returns every register of the user, and those of others who block or blocked the user, ordered by the other side,
// then by kind.
func (p *Product) Edges(user schemas.UserID) []schemas.Edge {
	var edges []schemas.Edge
	for other, e := range p.edges[user] {
		edges = append(edges, e.follow.report(user, other, schemas.FollowEdge, schemas.Follow)...)
		edges = append(edges, e.block.report(user, other, schemas.BlockEdge, schemas.Block)...)
	}
	for other, theirs := range p.edges {
		if e := theirs[schemas.ID(user)]; e != nil {
			edges = append(edges, e.block.report(user, schemas.ID(other), schemas.BlockedEdge, schemas.Block)...)
		}
	}
	slices.SortFunc(edges, func(a, b schemas.Edge) int {
		return cmp.Or(cmp.Compare(a.Other, b.Other), cmp.Compare(a.Kind, b.Kind))
	})
	return edges
}

// report returns the register as an edge of the given kind, or nil if it had no event. The edge is live if live is the
// winner's verb.
func (r *register) report(user schemas.UserID, other schemas.ID, k schemas.EdgeKind, live schemas.Verb) []schemas.Edge {
	if r.last == nil {
		return nil
	}
	return []schemas.Edge{{User: user, Other: other, Kind: k, Live: r.is(live), Time: r.last.Time}}
}
