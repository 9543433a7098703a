package fanout

import (
	"fmt"

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
		return g.block(tx, e)
	}
	before, after, what, err := apply(tx.Own(), rowFollow, e, e.Verb == schemas.Follow, false)
	if err != nil || what != newer {
		return err
	}
	return withState(tx, func(o *ownerState) error {
		is, err := o.edgeOf(e.Actor)
		if err != nil {
			return err
		}
		if err := g.sendFollow(tx, e.Actor, after, is.weight); err != nil || after.live == before.live {
			return err
		}
		if after.live {
			return g.addFollower(tx, o, is, before.id == "")
		}
		return g.removeFollower(tx, o, is)
	})
}

// block notifies both sides of a block of a user, and only the actor of any other block.
func (g *group) block(tx *rows.Tx, e *schemas.FollowEvent) error {
	_, after, what, err := apply(tx.Own(), rowBlock, e, e.Verb == schemas.Block, true)
	if err != nil || what != newer {
		return err
	}
	err = g.sendEdge(tx, schemas.Edge{User: e.Actor, Other: e.Object, Kind: schemas.BlockEdge, Live: after.live, Time: after.time})
	if err != nil || e.Object.Kind() != schemas.KindUser {
		return err
	}
	return g.sendEdge(tx, schemas.Edge{
		User: schemas.UserID(e.Object), Other: schemas.ID(e.Actor), Kind: schemas.BlockedEdge, Live: after.live, Time: after.time,
	})
}

// apply updates one of the actor's registers, and returns the register before and after.
func apply(own rows.Owner, kind byte, e *schemas.FollowEvent, live, tie bool) (before, after register, what change, err error) {
	if before, err = registerOf(own, kind, e.Actor); err != nil {
		return before, after, none, err
	}
	after, what = before.apply(register{live: live, time: e.Time, id: e.ID}, tie)
	if what != none {
		err = rows.PutValue(own, rowOf(kind, e.Actor), &after)
	}
	return before, after, what, err
}

func (g *group) sendEdge(tx *rows.Tx, e schemas.Edge) error {
	return rows.Send(tx, g.streams.Edges, string(e.User), &e)
}

// sendFollow notifies the actor of a follow or unfollow. The edge carries the weight, which readers apply to pulled pins.
func (g *group) sendFollow(tx *rows.Tx, user schemas.UserID, r register, weight float32) error {
	e := schemas.Edge{User: user, Other: schemas.ID(tx.Key()), Kind: schemas.FollowEdge, Live: r.live, Time: r.time}
	if r.live && weight != 1 {
		e.Weight = weight
	}
	return g.sendEdge(tx, e)
}

// addFollower adds an edge: the next walk includes it, and the follower receives a backfill. isNew is true if the user never
// followed before.
func (g *group) addFollower(tx *rows.Tx, o *ownerState, e edge, isNew bool) error {
	o.followers++
	if err := o.activateEdge(e); err != nil {
		return err
	}
	if err := g.updateMode(tx, o); err != nil {
		return err
	}
	if !isNew {
		return g.backfillAgain(tx, o, e)
	}
	return g.backfill(tx, o, e, 0)
}

// removeFollower removes an edge.
func (g *group) removeFollower(tx *rows.Tx, o *ownerState, e edge) error {
	o.followers--
	if err := o.removeEdge(e); err != nil {
		return err
	}
	return g.updateMode(tx, o)
}

// setEdgeMode deactivates the edge of an inactive follower, and delivers a backfill to a reactivated one. It answers every
// backfill request, even if the edge no longer exists.
func (g *group) setEdgeMode(tx *rows.Tx, m *schemas.EdgeMode) error {
	if tx.Key() != string(m.Followee) {
		return schemas.Bad(fmt.Sprintf("edge mode: key %q: want the followee %q", tx.Key(), m.Followee))
	}
	if _, err := schemas.ParseUserID(string(m.User)); err != nil {
		return schemas.Bad("edge mode: user: " + err.Error())
	}
	r, err := registerOf(tx.Own(), rowFollow, m.User)
	if err != nil {
		return err
	}
	if !r.live {
		return g.endBackfill(tx, m)
	}
	return withState(tx, func(o *ownerState) error {
		e, err := o.edgeOf(m.User)
		if err != nil {
			return err
		}
		if m.Inactive {
			tx.Effect(effectDeactivated, 1)
			return o.deactivateEdge(e)
		}
		tx.Effect(effectReactivated, 1)
		if err := o.reactivateEdge(e); err != nil {
			return err
		}
		if m.BackfillID == schemas.NotAwaited {
			return g.backfillAgain(tx, o, e)
		}
		return g.backfill(tx, o, e, m.BackfillID)
	})
}

// endBackfill answers the backfill request of a user who no longer follows.
func (g *group) endBackfill(tx *rows.Tx, m *schemas.EdgeMode) error {
	if m.Inactive {
		return nil
	}
	return g.deliverTo(tx, nil, edge{m.User, 1}, m.BackfillID)
}
