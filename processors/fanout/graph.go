package fanout

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// follow applies an event of the topic follows to its register.
func (g *group) follow(tx *rows.Tx, e *schemas.FollowEvent) error {
	if err := check(tx, e); err != nil {
		return err
	}
	if g.deleted.Has(e.Actor) || g.deleted.Has(schemas.UserID(e.Object)) {
		tx.Count(dropDeletedUser)
		return nil
	}
	if e.Verb == schemas.Block || e.Verb == schemas.Unblock {
		return g.block(tx, e)
	}
	was, is, what, err := apply(tx.Own(), rowFollow, e, e.Verb == schemas.Follow, false)
	if err != nil || what != newer {
		return err
	}
	if err := g.tell(tx, edgeOf(e, is)); err != nil {
		return err
	}
	switch {
	case is.live && !was.live:
		return g.begin(tx, e.Actor)
	case was.live && !is.live:
		return tx.Own().Delete(rowOf(rowLive, e.Actor))
	}
	return nil
}

func check(tx *rows.Tx, e *schemas.FollowEvent) error {
	if err := e.CheckKey(tx.Key()); err != nil {
		return err
	}
	return e.Validate(schemas.MicrosOf(tx.Time()))
}

// block tells both sides of a block of a user, the actor alone of any other.
func (g *group) block(tx *rows.Tx, e *schemas.FollowEvent) error {
	_, is, what, err := apply(tx.Own(), rowBlock, e, e.Verb == schemas.Block, true)
	if err != nil || what != newer {
		return err
	}
	if err := g.tell(tx, edgeOf(e, is)); err != nil || e.Object.Kind() != schemas.KindUser {
		return err
	}
	return g.tell(tx, schemas.Edge{
		User: schemas.UserID(e.Object), Other: schemas.ID(e.Actor), Kind: schemas.BlockedEdge, Live: is.live, Time: is.time,
	})
}

// edgeOf is the actor's side of a register.
func edgeOf(e *schemas.FollowEvent, r register) schemas.Edge {
	kind := schemas.FollowEdge
	if e.Verb == schemas.Block || e.Verb == schemas.Unblock {
		kind = schemas.BlockEdge
	}
	return schemas.Edge{User: e.Actor, Other: e.Object, Kind: kind, Live: r.live, Time: r.time}
}

// apply updates the actor's register of a kind, and returns it before and after.
func apply(own rows.Owner, kind byte, e *schemas.FollowEvent, live, tie bool) (was, is register, what change, err error) {
	row := rowOf(kind, e.Actor)
	value, err := own.Get(row)
	if err != nil {
		return was, is, none, err
	}
	if was, err = parseRegister(value); err != nil {
		return was, is, none, err
	}
	is, what = was.apply(register{live: live, time: e.Time, id: e.ID}, tie)
	if what != none {
		err = own.Put(row, appendRegister(nil, is))
	}
	return was, is, what, err
}

func (g *group) tell(tx *rows.Tx, e schemas.Edge) error {
	return rows.Send(tx, g.streams.Edges, string(e.User), &e)
}

// begin makes an edge live: the next walk meets it, and the follower is brought what was published before.
func (g *group) begin(tx *rows.Tx, user schemas.UserID) error {
	own := tx.Own()
	w, err := weightOf(own, user)
	if err != nil {
		return err
	}
	if err := own.Put(rowOf(rowLive, user), liveValue(w.value)); err != nil {
		return err
	}
	return g.backfill(tx, user, w.value)
}

func weightOf(own rows.Owner, user schemas.UserID) (weight, error) {
	value, err := own.Get(rowOf(rowWeight, user))
	if err != nil {
		return weight{}, err
	}
	return parseWeight(value)
}

// weigh keeps a follower's weight, also of one who does not follow yet, or no longer.
func (g *group) weigh(tx *rows.Tx, e *schemas.EdgeWeight) error {
	if err := checkWeight(tx.Key(), e); err != nil {
		return err
	}
	if g.deleted.Has(e.User) {
		tx.Count(dropDeletedUser)
		return nil
	}
	own := tx.Own()
	was, err := weightOf(own, e.User)
	if err != nil {
		return err
	}
	is, changed := was.apply(weight{value: e.Weight, time: e.Time})
	if !changed {
		return nil
	}
	if err := own.Put(rowOf(rowWeight, e.User), appendWeight(nil, is)); err != nil {
		return err
	}
	live, err := own.Get(rowOf(rowLive, e.User))
	if err != nil || live == nil {
		return err
	}
	return own.Put(rowOf(rowLive, e.User), liveValue(is.value))
}

func checkWeight(key string, e *schemas.EdgeWeight) error {
	if key != string(e.Followee) {
		return schemas.Bad(fmt.Sprintf("edge weight: key %q is not the followee %q", key, e.Followee))
	}
	if _, err := schemas.ParseUserID(string(e.User)); err != nil {
		return schemas.Bad("edge weight: user: " + err.Error())
	}
	if w := float64(e.Weight); !(w > 0) || math.IsInf(w, 0) {
		return schemas.Bad(fmt.Sprintf("edge weight %v: want a positive number", e.Weight))
	}
	return nil
}
