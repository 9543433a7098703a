package fanout

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Erasure. A step reads the rows that are left, so it can be repeated after a crash. It first notes that the user is
// deleted. Records in flight for the same rows, such as a walk or edges on their way to a shard, then find the user
// deleted.

// erase processes a step of an erasure. It ignores the steps of the pools group.
func (g *group) erase(tx *rows.Tx, e *schemas.Erasure) error {
	owner, err := checkErasure(tx.Key(), e)
	if err != nil {
		return err
	}
	g.deleted.Note(e.User, e.Time)
	switch e.Step {
	case schemas.EraseFollower:
		return onBook(tx, func(b *book) error { return g.forget(tx, b, owner, e.User) })
	case schemas.EraseUser, schemas.EraseFollowee:
		return onBook(tx, func(b *book) error { return g.clear(tx, b, e) })
	}
	return nil
}

// checkErasure returns the followee whose rows the step erases.
func checkErasure(key string, e *schemas.Erasure) (schemas.Followee, error) {
	owner, shard := followeeOf(key)
	if _, err := schemas.ParseUserID(string(e.User)); err != nil {
		return "", schemas.Bad("erasure: user: " + err.Error())
	}
	switch e.Step {
	case schemas.EraseFollower:
		if _, err := schemas.ParseFollowee(key); err != nil {
			return "", schemas.Bad("erasure: followee: " + err.Error())
		}
		return owner, nil
	case schemas.EraseUser, schemas.EraseReader, schemas.EraseRest:
		if shard {
			return "", schemas.Bad(fmt.Sprintf("erasure: step %q at a shard", e.Step))
		}
	case schemas.EraseFollowee:
	default:
		return "", schemas.Bad(fmt.Sprintf("erasure: unknown step %q", e.Step))
	}
	if owner != schemas.Followee(e.User) {
		return "", schemas.Bad(fmt.Sprintf("erasure: key %q is not of the user %q", key, e.User))
	}
	return owner, nil
}

// isGone reports whether a followee is a deleted user.
func (g *group) isGone(f schemas.Followee) bool {
	return schemas.ID(f).Kind() == schemas.KindUser && g.deleted.Has(schemas.UserID(f))
}

// own maintains the list of an author's pins. Unlike the recents, the list is complete: it also holds pins that the recents
// have dropped and that the index no longer knows.
func (b *book) own(followee string, r *recent, was *known) error {
	if schemas.ID(followee).Kind() != schemas.KindUser {
		return nil
	}
	row := rowOf(rowOwn, r.Pin)
	switch {
	case r.gone || string(r.Author) != followee:
		return b.Delete(row)
	case was == nil || was.gone:
		return b.Put(row, []byte{})
	}
	return nil
}

// refuse drops a publication of a deleted user and deletes its pin. The publication may be older than the deletion.
func (g *group) refuse(tx *rows.Tx, p *schemas.Publication) error {
	tx.Count(dropDeletedUser)
	if p.Deleted || string(p.Author) != string(p.Followee) {
		return nil
	}
	return g.withdraw(tx, p.Author, p.Pin)
}

// withdraw deletes a pin of a deleted user with the same event that the user would send.
func (g *group) withdraw(tx *rows.Tx, author schemas.UserID, pin schemas.PinID) error {
	tx.Effect(effectErased, 1)
	return rows.Send(tx, g.streams.Pins, string(pin), &schemas.PinEvent{Event: schemas.Event{
		ID: erasedID(pin), Time: schemas.MicrosOf(tx.Time()), Actor: author, Verb: schemas.Delete, Object: schemas.ID(pin),
	}})
}

// erasedID returns the id of the event that deletes a pin with its author. It depends only on the pin.
func erasedID(pin schemas.PinID) string {
	sum := sha256.Sum256([]byte(pin))
	return fmt.Sprintf("erased:%x", sum[:16])
}

// forget removes a deleted user's follow, block, weight and backfill budget from a followee.
func (g *group) forget(tx *rows.Tx, b *book, followee schemas.Followee, user schemas.UserID) error {
	follow, err := registerOf(b.Owner, rowFollow, user)
	if err != nil {
		return err
	}
	block, err := registerOf(b.Owner, rowBlock, user)
	if err != nil {
		return err
	}
	if follow.live {
		if err := g.leave(tx, b, user); err != nil {
			return err
		}
	}
	if err := g.dropBudgetTimer(b.Owner, rowOf(rowBudget, user)); err != nil {
		return err
	}
	for _, kind := range []byte{rowFollow, rowBlock, rowWeight, rowBudget} {
		if err := b.deleteIfThere(rowOf(kind, user)); err != nil {
			return err
		}
	}
	if block.id == "" || schemas.ID(followee).Kind() != schemas.KindUser {
		return nil
	}
	return g.tellErased(tx, schemas.UserID(followee), schemas.ID(user), schemas.BlockedEdge, block)
}

func (b *book) deleteIfThere(row []byte) error {
	value, err := b.Get(row)
	if err != nil || value == nil {
		return err
	}
	return b.Delete(row)
}

// tellErased notifies one side of an edge that the other side is erased.
func (g *group) tellErased(tx *rows.Tx, user schemas.UserID, other schemas.ID, kind schemas.EdgeKind, r register) error {
	return g.tell(tx, schemas.Edge{
		User: user, Other: other, Kind: kind, Time: max(r.time, schemas.MicrosOf(tx.Time())), Erased: true,
	})
}

// clear deletes the next rows of a deleted user or of one of the user's shards, and sends the next step.
func (g *group) clear(tx *rows.Tx, b *book, e *schemas.Erasure) error {
	more, err := g.clearSome(tx, b, e.User)
	if err != nil {
		return err
	}
	next := schemas.Erasure{User: e.User, Step: schemas.EraseFollowee, Time: e.Time}
	if more {
		return rows.Send(tx, g.streams.Erasures, tx.Key(), &next)
	}
	if b.spread {
		for p := range g.partitions {
			shard := shardOf(schemas.Followee(tx.Key()), p, g.partitions)
			if err := rows.Send(tx, g.streams.Erasures, shard, &next); err != nil {
				return err
			}
		}
	}
	b.state = state{}
	return nil
}

// clearSome deletes at most Config.StepEdges rows and reports whether there are more. It keeps the state, which is deleted
// last.
func (g *group) clearSome(tx *rows.Tx, b *book, user schemas.UserID) (more bool, err error) {
	type row struct{ name, value string }
	var list []row
	err = b.Scan(rows.Scan{Limit: g.cfg.StepEdges + 2}, func(name, value []byte) bool {
		if name[0] != rowState {
			list = append(list, row{string(name), string(value)})
		}
		return true
	})
	if len(list) > g.cfg.StepEdges {
		list, more = list[:g.cfg.StepEdges], true
	}
	for _, r := range list {
		if err == nil {
			err = g.part(tx, user, r.name, r.value)
		}
		if err == nil {
			err = b.Delete([]byte(r.name))
		}
	}
	return more, err
}

// part sends the notifications and drops the timers that belong to a row before the row is deleted.
func (g *group) part(tx *rows.Tx, user schemas.UserID, name, value string) error {
	rest := name[1:]
	switch name[0] {
	case rowOwn:
		return g.withdraw(tx, user, schemas.PinID(rest))
	case rowRecent:
		r, err := parseRecent(name, value)
		if err != nil || r.Author != user {
			return err
		}
		return g.withdraw(tx, user, r.Pin)
	case rowIndex:
		k, err := parseKnown([]byte(value))
		if err != nil || k.slot == noSlot {
			return err
		}
		return g.vacate(tx, k.slot)
	case rowStep:
		return dropTimeout(tx.Own(), value)
	case rowBudget:
		return g.dropBudgetTimer(tx.Own(), []byte(name))
	case rowFollow:
		return g.partRegister(tx, user, rest, schemas.FollowEdge, value)
	case rowBlock:
		return g.partRegister(tx, user, rest, schemas.BlockEdge, value)
	}
	return nil
}

// dropTimeout removes the timer of an expected step.
func dropTimeout(own rows.Owner, value string) error {
	e, err := parseExpected([]byte(value))
	if err != nil {
		return err
	}
	return own.DropTimer(e.timer.Time(), expectedRow())
}

// dropBudgetTimer removes the timer of a deferred backfill, if there is one. The timer's name is the name of the row.
func (g *group) dropBudgetTimer(own rows.Owner, row []byte) error {
	value, err := own.Get(row)
	if err != nil {
		return err
	}
	l, err := parseBudget(value)
	if err != nil || !l.timing {
		return err
	}
	return own.DropTimer(l.end(g.cfg.BackfillInterval).Time(), row)
}

func (g *group) partRegister(tx *rows.Tx, user schemas.UserID, actor string, kind schemas.EdgeKind, value string) error {
	r, err := parseRegister([]byte(value))
	if err != nil {
		return errors.Join(fmt.Errorf("register of %q", actor), err)
	}
	return g.tellErased(tx, schemas.UserID(actor), schemas.ID(user), kind, r)
}
