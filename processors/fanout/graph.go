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
	return onBook(tx, func(b *book) error {
		w, err := b.weightOf(e.Actor)
		if err != nil {
			return err
		}
		if err := g.tellFollow(tx, e.Actor, is, w.value); err != nil || is.live == was.live {
			return err
		}
		if is.live {
			return g.join(tx, b, edge{e.Actor, w.value}, was.id == "")
		}
		return g.leave(tx, b, e.Actor)
	})
}

func check(tx *rows.Tx, e *schemas.FollowEvent) error {
	if err := e.CheckKey(tx.Key()); err != nil {
		return err
	}
	return e.Validate(schemas.MicrosOf(tx.Time()))
}

// block notifies both sides of a block of a user, and only the actor of any other block.
func (g *group) block(tx *rows.Tx, e *schemas.FollowEvent) error {
	_, is, what, err := apply(tx.Own(), rowBlock, e, e.Verb == schemas.Block, true)
	if err != nil || what != newer {
		return err
	}
	err = g.tell(tx, schemas.Edge{User: e.Actor, Other: e.Object, Kind: schemas.BlockEdge, Live: is.live, Time: is.time})
	if err != nil || e.Object.Kind() != schemas.KindUser {
		return err
	}
	return g.tell(tx, schemas.Edge{
		User: schemas.UserID(e.Object), Other: schemas.ID(e.Actor), Kind: schemas.BlockedEdge, Live: is.live, Time: is.time,
	})
}

// apply updates one of the actor's registers, and returns the register before and after.
func apply(own rows.Owner, kind byte, e *schemas.FollowEvent, live, tie bool) (was, is register, what change, err error) {
	if was, err = registerOf(own, kind, e.Actor); err != nil {
		return was, is, none, err
	}
	is, what = was.apply(register{live: live, time: e.Time, id: e.ID}, tie)
	if what != none {
		err = own.Put(rowOf(kind, e.Actor), appendRegister(nil, is))
	}
	return was, is, what, err
}

func registerOf(own rows.Owner, kind byte, user schemas.UserID) (register, error) {
	value, err := own.Get(rowOf(kind, user))
	if err != nil {
		return register{}, err
	}
	return parseRegister(value)
}

func (g *group) tell(tx *rows.Tx, e schemas.Edge) error {
	return rows.Send(tx, g.streams.Edges, string(e.User), &e)
}

// tellFollow notifies the actor of a follow or unfollow. The edge carries the weight, which readers apply to pulled pins.
func (g *group) tellFollow(tx *rows.Tx, user schemas.UserID, r register, weight float32) error {
	e := schemas.Edge{User: user, Other: schemas.ID(tx.Key()), Kind: schemas.FollowEdge, Live: r.live, Time: r.time}
	if r.live && weight != 1 {
		e.Weight = weight
	}
	return g.tell(tx, e)
}

// join makes an edge live: the next walk includes it, and the follower gets a backfill. isNew reports that the edge was
// never live.
func (g *group) join(tx *rows.Tx, b *book, e edge, isNew bool) error {
	b.followers++
	if err := g.changeEdge(tx, b, schemas.EdgeLive, e); err != nil {
		return err
	}
	if err := g.settle(tx, b); err != nil {
		return err
	}
	if !isNew {
		return g.backfillAgain(tx, b, e)
	}
	return g.backfill(tx, b, e, 0)
}

// leave removes a live edge.
func (g *group) leave(tx *rows.Tx, b *book, user schemas.UserID) error {
	b.followers--
	if err := g.changeEdge(tx, b, schemas.EdgeDead, edge{user, 1}); err != nil {
		return err
	}
	return g.settle(tx, b)
}

// mode marks an edge as inactive while its follower is, and delivers a backfill to a reactivated follower. It answers every
// backfill request, even if the edge no longer exists.
func (g *group) mode(tx *rows.Tx, m *schemas.EdgeMode) error {
	if tx.Key() != string(m.Followee) {
		return schemas.Bad(fmt.Sprintf("edge mode: key %q is not the followee %q", tx.Key(), m.Followee))
	}
	if _, err := schemas.ParseUserID(string(m.User)); err != nil {
		return schemas.Bad("edge mode: user: " + err.Error())
	}
	r, err := registerOf(tx.Own(), rowFollow, m.User)
	if err != nil {
		return err
	}
	if !r.live {
		return g.answer(tx, m)
	}
	return onBook(tx, func(b *book) error {
		w, err := b.weightOf(m.User)
		if err != nil {
			return err
		}
		e := edge{m.User, w.value}
		if m.Away {
			tx.Effect(effectWentAway, 1)
			return g.changeEdge(tx, b, schemas.EdgeAway, e)
		}
		tx.Effect(effectCameBack, 1)
		if err := g.changeEdge(tx, b, schemas.EdgeBack, e); err != nil {
			return err
		}
		if m.Asked == schemas.NotAwaited {
			return g.backfillAgain(tx, b, e)
		}
		return g.backfill(tx, b, e, m.Asked)
	})
}

// answer answers the backfill request of a user who no longer follows.
func (g *group) answer(tx *rows.Tx, m *schemas.EdgeMode) error {
	if m.Away {
		return nil
	}
	return g.hand(tx, nil, edge{m.User, 1}, m.Asked)
}

func (b *book) weightOf(user schemas.UserID) (weight, error) {
	if !b.weighed {
		return parseWeight(nil)
	}
	value, err := b.Get(rowOf(rowWeight, user))
	if err != nil {
		return weight{}, err
	}
	return parseWeight(value)
}

// weigh stores a follower's weight, also for a user who does not follow yet or no longer follows.
func (g *group) weigh(tx *rows.Tx, e *schemas.EdgeWeight) error {
	if err := checkWeight(tx.Key(), e); err != nil {
		return err
	}
	if g.isGone(e.Followee) {
		tx.Count(dropDeletedUser)
		return nil
	}
	return onBook(tx, func(b *book) error {
		if g.deleted.Has(e.User) { // an affinity may have ended without the erasure knowing of it
			tx.Count(dropDeletedUser)
			return b.deleteIfThere(rowOf(rowWeight, e.User))
		}
		was, err := b.weightOf(e.User)
		if err != nil {
			return err
		}
		is, changed := was.apply(weight{value: e.Weight, time: e.Time})
		if !changed {
			return nil
		}
		r, err := registerOf(b.Owner, rowFollow, e.User)
		if err != nil {
			return err
		}
		if err := b.putWeight(e.User, is, r); err != nil || is.value == was.value || !r.live {
			return err
		}
		return g.reweigh(tx, b, edge{e.User, is.value}, r)
	})
}

// putWeight writes a follower's weight. A weight of 1 equals a missing row. For a user who never followed, putWeight
// deletes the row: only the weight knows the user, and once the affinity has ended, no erasure would find it.
//
// For a user with a register, the row stays with its time, so an older weight that arrives late, for example from a dead
// letter, is dropped. For a user without a register, a late weight is stored. It has no effect, and stays until the user's
// next weight.
func (b *book) putWeight(user schemas.UserID, w weight, r register) error {
	row := rowOf(rowWeight, user)
	if w.value == 1 && r.id == "" {
		return b.deleteIfThere(row)
	}
	b.weighed = true
	return b.Put(row, appendWeight(nil, w))
}

// reweigh gives a live edge another weight.
func (g *group) reweigh(tx *rows.Tx, b *book, e edge, r register) error {
	if err := g.tellFollow(tx, e.user, r, e.weight); err != nil {
		return err
	}
	return g.changeEdge(tx, b, schemas.EdgeWeighs, e)
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
