package fanout

import (
	"crypto/sha256"
	"fmt"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Erasure. A step reads the remaining rows, so it can be repeated after a crash. It first adds the user to the set of deleted
// users, which records in flight for the same rows check.

// erase processes a step of an erasure. It ignores the steps of the pools group.
func (g *group) erase(tx *rows.Tx, e *schemas.Erasure) error {
	if err := checkErasure(tx.Key(), e); err != nil {
		return err
	}
	g.deleted.Note(e.User, e.Time)
	switch e.Step {
	case schemas.EraseFollower:
		withState(tx, func(o *ownerState) { g.eraseFollower(tx, o, e.User) })
	case schemas.EraseUser, schemas.EraseFollowee:
		withState(tx, func(o *ownerState) { g.eraseFollowee(tx, o, e) })
	}
	return nil
}

func checkErasure(key string, e *schemas.Erasure) error {
	if _, err := schemas.ParseUserID(string(e.User)); err != nil {
		return schemas.Bad("erasure: user: " + err.Error())
	}
	switch e.Step {
	case schemas.EraseFollower:
		if _, err := schemas.ParseFollowee(key); err != nil {
			return schemas.Bad("erasure: followee: " + err.Error())
		}
		return nil
	case schemas.EraseUser, schemas.EraseFollowee, schemas.EraseReader, schemas.EraseRest:
		if key != string(e.User) {
			return schemas.Bad(fmt.Sprintf("erasure: key %q: want the user %q", key, e.User))
		}
		return nil
	}
	return schemas.Bad(fmt.Sprintf("erasure: step %q: want a known step", e.Step))
}

// isDeleted reports whether a followee is a deleted user.
func (g *group) isDeleted(f schemas.Followee) bool {
	return schemas.ID(f).Kind() == schemas.KindUser && g.deleted.Has(schemas.UserID(f))
}

// updateOwn maintains the list of an author's pins. Unlike the recents, the list is complete: it also has pins that the
// recents and the index have dropped.
func (o *ownerState) updateOwn(followee string, r *recent, stored *known) {
	if schemas.ID(followee).Kind() != schemas.KindUser {
		return
	}
	row := rows.Name(rowOwn, r.Pin)
	switch {
	case r.withdrawn || string(r.Author) != followee:
		o.Delete(row)
	case stored == nil || stored.withdrawn:
		o.Put(row, []byte{})
	}
}

// rejectDeleted drops a publication of a deleted user and deletes its pin. The publication may be older than the deletion.
func (g *group) rejectDeleted(tx *rows.Tx, p *schemas.Publication) {
	tx.Count(dropDeletedUser)
	if !p.Deleted && string(p.Author) == string(p.Followee) {
		g.deletePin(tx, p.Author, p.Pin)
	}
}

// deletePin deletes a pin of a deleted user with the same event that the user would send.
func (g *group) deletePin(tx *rows.Tx, author schemas.UserID, pin schemas.PinID) {
	tx.Effect(effectErased, 1)
	rows.Send(tx, g.streams.Pins, string(pin), &schemas.PinEvent{Event: schemas.Event{
		ID: erasedID(pin), Time: schemas.MicrosOf(tx.Time()), Actor: author, Verb: schemas.Delete, Object: schemas.ID(pin),
	}})
}

// erasedID returns the id of the event that deletes a pin with its author. It depends only on the pin.
func erasedID(pin schemas.PinID) string {
	sum := sha256.Sum256([]byte(pin))
	return fmt.Sprintf("erased:%x", sum[:16])
}

// eraseFollower removes a deleted user's follow, block, weight and backfill budget from a followee.
func (g *group) eraseFollower(tx *rows.Tx, o *ownerState, user schemas.UserID) {
	follow := registerOf(o.Owner, rowFollow, user)
	block := registerOf(o.Owner, rowBlock, user)
	if follow.live {
		g.removeFollower(tx, o, edge{user: user})
	}
	g.dropBudgetTimer(o.Owner, rows.Name(rowBudget, user))
	for _, kind := range []byte{rowFollow, rowBlock, rowWeight, rowBudget} {
		o.deleteIfPresent(rows.Name(kind, user))
	}
	if block.id != "" && schemas.ID(tx.Key()).Kind() == schemas.KindUser {
		g.sendErased(tx, schemas.UserID(tx.Key()), schemas.ID(user), schemas.BlockedEdge, block)
	}
}

// sendErased notifies one side of an edge that the other side is erased.
func (g *group) sendErased(tx *rows.Tx, user schemas.UserID, other schemas.ID, kind schemas.EdgeKind, r register) {
	g.sendEdge(tx, schemas.Edge{
		User: user, Other: other, Kind: kind, Time: max(r.time, schemas.MicrosOf(tx.Time())), Erased: true,
	})
}

// eraseFollowee deletes the next rows of a deleted user, and sends the next step.
func (g *group) eraseFollowee(tx *rows.Tx, o *ownerState, e *schemas.Erasure) {
	if g.eraseSome(tx, o, e.User) {
		rows.Send(tx, g.streams.Erasures, tx.Key(), &schemas.Erasure{User: e.User, Step: schemas.EraseFollowee, Time: e.Time})
		return
	}
	o.state = state{}
}

// eraseSome deletes at most Config.StepFollowers rows and reports whether there are more. It keeps the state, which is
// deleted last.
func (g *group) eraseSome(tx *rows.Tx, o *ownerState, user schemas.UserID) (more bool) {
	type row struct{ name, value string }
	var list []row
	rows.LoadRows(o.Owner, rows.Scan{Limit: g.cfg.StepFollowers + 2}, func(name, value []byte) (bool, error) {
		if name[0] != rowState {
			list = append(list, row{string(name), string(value)})
		}
		return true, nil
	})
	if len(list) > g.cfg.StepFollowers {
		list, more = list[:g.cfg.StepFollowers], true
	}
	for _, r := range list {
		g.notifyErased(tx, user, r.name, r.value)
		o.Delete([]byte(r.name))
	}
	return more
}

// notifyErased sends the notifications and drops the timers that belong to a row before the row is deleted.
func (g *group) notifyErased(tx *rows.Tx, user schemas.UserID, name, value string) {
	rest := name[1:]
	switch name[0] {
	case rowOwn:
		g.deletePin(tx, user, schemas.PinID(rest))
	case rowRecent:
		r, err := parseRecent(name, value)
		if tx.Fail(err); r.Author == user {
			g.deletePin(tx, user, r.Pin)
		}
	case rowIndex:
		k, err := packed.Decode[known]([]byte(value))
		if tx.Fail(err); k.slot != noSlot {
			g.deleteSlot(tx, k.slot)
		}
	case rowStep:
		e, err := packed.Decode[expected]([]byte(value))
		tx.Fail(err)
		tx.Own().DropTimer(e.timer.Time(), expectedRow())
	case rowBudget:
		g.dropBudgetTimer(tx.Own(), []byte(name))
	case rowFollow:
		g.sendErasedRegister(tx, user, rest, schemas.FollowEdge, value)
	case rowBlock:
		g.sendErasedRegister(tx, user, rest, schemas.BlockEdge, value)
	}
}

func (g *group) sendErasedRegister(tx *rows.Tx, user schemas.UserID, actor string, kind schemas.EdgeKind, value string) {
	r, err := packed.Decode[register]([]byte(value))
	if err != nil {
		tx.Fail(fmt.Errorf("read register of %q: %w", actor, err))
	}
	g.sendErased(tx, schemas.UserID(actor), schemas.ID(user), kind, r)
}
