package fanout

import (
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// follow applies an event of the topic follows to its register.
func (g *group) follow(tx *rows.Tx, e *schemas.FollowEvent) error {
	if err := rows.Validate(tx, e, nil); err != nil {
		return err
	}
	if g.deleted.Has(e.Actor) || g.deleted.Has(schemas.UserID(e.Object)) {
		tx.Count(dropDeletedUser)
		return nil
	}
	if e.Verb == schemas.Block || e.Verb == schemas.Unblock {
		g.block(tx, e)
		return nil
	}
	before, after, what := apply(tx.Own(), rowFollow, e, e.Verb == schemas.Follow, false)
	if what != newer {
		return nil
	}
	withState(tx, func(o *ownerState) {
		is := o.edgeOf(e.Actor)
		g.sendFollow(tx, e.Actor, after, is.weight)
		switch {
		case after.live == before.live:
		case after.live:
			g.addFollower(tx, o, is, before.id == "")
		default:
			g.removeFollower(tx, o, is)
		}
	})
	return nil
}

// block notifies both sides of a block of a user, and only the actor of any other block.
func (g *group) block(tx *rows.Tx, e *schemas.FollowEvent) {
	_, after, what := apply(tx.Own(), rowBlock, e, e.Verb == schemas.Block, true)
	if what != newer {
		return
	}
	g.sendEdge(tx, schemas.Edge{User: e.Actor, Other: e.Object, Kind: schemas.BlockEdge, Live: after.live, Time: after.time})
	if e.Object.Kind() != schemas.KindUser {
		return
	}
	g.sendEdge(tx, schemas.Edge{
		User: schemas.UserID(e.Object), Other: schemas.ID(e.Actor), Kind: schemas.BlockedEdge, Live: after.live, Time: after.time,
	})
}

// apply updates one of the actor's registers, and returns the register before and after.
func apply(own rows.Owner, kind byte, e *schemas.FollowEvent, live, tie bool) (before, after register, what change) {
	before = registerOf(own, kind, e.Actor)
	after, what = before.apply(register{live: live, time: e.Time, id: e.ID}, tie)
	if what != none {
		rows.PutValue(own, rows.Name(kind, e.Actor), &after)
	}
	return before, after, what
}

func (g *group) sendEdge(tx *rows.Tx, e schemas.Edge) {
	rows.Send(tx, g.streams.Edges, string(e.User), &e)
}

// sendFollow notifies the actor of a follow or unfollow. The edge carries the weight, which readers apply to pulled pins.
func (g *group) sendFollow(tx *rows.Tx, user schemas.UserID, r register, weight float32) {
	e := schemas.Edge{User: user, Other: schemas.ID(tx.Key()), Kind: schemas.FollowEdge, Live: r.live, Time: r.time}
	if r.live && weight != 1 {
		e.Weight = weight
	}
	g.sendEdge(tx, e)
}

// addFollower adds an edge: the next walk includes it, and the follower receives a backfill. isNew is true if the user never
// followed before.
func (g *group) addFollower(tx *rows.Tx, o *ownerState, e edge, isNew bool) {
	o.followers++
	o.activateEdge(e)
	g.updateMode(tx, o)
	if isNew {
		g.backfill(tx, o, e, 0)
	} else {
		g.backfillAgain(tx, o, e)
	}
}

// removeFollower removes an edge.
func (g *group) removeFollower(tx *rows.Tx, o *ownerState, e edge) {
	o.followers--
	o.removeEdge(e)
	g.updateMode(tx, o)
}

// setEdgeMode deactivates the edge of an inactive follower, and delivers a backfill to a reactivated one. It answers every
// backfill request, even if the edge no longer exists.
func (g *group) setEdgeMode(tx *rows.Tx, m *schemas.EdgeMode) error {
	if _, err := schemas.ParseUserID(string(m.User)); err != nil {
		return schemas.Bad("edge mode: user: " + err.Error())
	}
	if !registerOf(tx.Own(), rowFollow, m.User).live {
		if !m.Inactive { // the pools wait for the answer
			g.deliverTo(tx, nil, edge{m.User, 1}, m.BackfillID)
		}
		return nil
	}
	withState(tx, func(o *ownerState) {
		e := o.edgeOf(m.User)
		if m.Inactive {
			tx.Effect(effectDeactivated, 1)
			o.deactivateEdge(e)
			return
		}
		tx.Effect(effectReactivated, 1)
		o.reactivateEdge(e)
		if m.BackfillID == schemas.NotAwaited {
			g.backfillAgain(tx, o, e)
			return
		}
		g.backfill(tx, o, e, m.BackfillID)
	})
	return nil
}
