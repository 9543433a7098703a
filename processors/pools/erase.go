package pools

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// An erasure deletes the rows in steps and notifies the followees in them. After the last row, it requests the last step
// (schemas.EraseRest). silent.go has the differences in a generation that is being built.

// eraseRows is the maximum number of a deleted user's rows that one step deletes.
const eraseRows = 2000

// timerErase is the timer that continues an erasure; see continuesByTimer.
const timerErase = "erase"

// erase processes one step of an erasure. It ignores the steps of the fanout group.
func (g *group) erase(tx *rows.Tx, e *schemas.Erasure) error {
	switch e.Step {
	case schemas.EraseUser, schemas.EraseReader, schemas.EraseRest:
	default:
		return nil
	}
	if tx.Key() != string(e.User) {
		return schemas.Bad(fmt.Sprintf("erasure: key %q: want the user %q", tx.Key(), e.User))
	}
	g.deleted.Note(e.User, e.Time) // later records cannot restore a row
	own := tx.Own()
	g.dropTimers(tx, own, e)
	more := g.eraseSome(tx, own, e, leftByErasure(tx, e.Step))
	switch {
	case more && continuesByTimer(tx, e.Step):
		own.SetTimer(tx.Time(), []byte(timerErase))
		return nil
	case !more && e.Step == schemas.EraseRest:
		return nil
	}
	next := schemas.Erasure{User: e.User, Step: schemas.EraseReader, Time: e.Time}
	if !more || e.Step == schemas.EraseRest {
		next.Step = schemas.EraseRest
	}
	rows.Send(tx, g.streams.Erasures, tx.Key(), &next)
	return nil
}

// eraseSome deletes the next rows, except those that leave selects, and notifies the followees in them. more reports whether
// rows remain.
func (g *group) eraseSome(tx *rows.Tx, own rows.Owner, e *schemas.Erasure, leave func(row []byte) bool) (more bool) {
	return dropRows(tx, own, nil, eraseRows, leave, func(row []byte) {
		if other, ok := followeeIn(row); ok {
			g.sendErasure(tx, e, other)
		}
	})
}

// eraseOn continues an erasure when the timer fires.
func (g *group) eraseOn(tx *rows.Tx, own rows.Owner, at time.Time) {
	e := &schemas.Erasure{User: schemas.UserID(tx.Key()), Time: schemas.MicrosOf(at)}
	if g.eraseSome(tx, own, e, keepNone) {
		own.SetTimer(tx.Time().Add(time.Millisecond), []byte(timerErase)) // a later time than that of the timer that just fired
	}
}

// dropTimers removes the user's timers.
func (g *group) dropTimers(tx *rows.Tx, own rows.Owner, e *schemas.Erasure) {
	if e.Step == schemas.EraseUser {
		dropSweeps(tx, own, e.User)
	}
	if a, _ := rows.Load[layout.Activity](own, []byte{layout.KindActivity}); a.CheckAt != 0 {
		own.DropTimer(a.CheckAt.Time(), []byte(timerInactivity))
	}
}

// dropRows deletes the first rows of an owner with a prefix, at most limit and until the record is full, except those that leave
// selects. It calls before with each row. more reports whether rows remain.
func dropRows(
	tx *rows.Tx, own rows.Owner, prefix []byte, limit int, leave func(row []byte) bool, before func(row []byte),
) (more bool) {
	dropped := 0
	rows.LoadRows(own, rows.Scan{Prefix: prefix}, func(row, _ []byte) (bool, error) {
		if leave(row) {
			return true, nil
		}
		if more = dropped == limit || !tx.HasRoom(); !more {
			before(row)
			own.Delete(row)
			dropped++
		}
		return !more, nil
	})
	return more
}

func keepNone([]byte) bool { return false }

// namesFollowee reports whether a followee must be notified when the row is deleted.
func namesFollowee(row []byte) bool {
	_, ok := followeeIn(row)
	return ok
}

// followeeIn returns the followee in a row of a current, former or refused follow, or of a block by the user. A block of the
// user by another is a row of that followee and is deleted there.
func followeeIn(row []byte) (schemas.ID, bool) {
	switch {
	case row[0] == layout.KindFormer, row[0] == layout.KindRefused:
		return schemas.ID(row[1:]), true
	case row[0] == layout.KindGraph && len(row) > 2 && row[1] != layout.RegisterBlockedBy:
		return schemas.ID(row[2:]), true
	}
	return "", false
}

func (g *group) sendErasure(tx *rows.Tx, e *schemas.Erasure, followee schemas.ID) {
	rows.Send(tx, g.streams.Erasures, string(followee), &schemas.Erasure{User: e.User, Step: schemas.EraseFollower, Time: e.Time})
}

// formerRefused is the value of a KindFormer row if the follow was refused when it ended.
var formerRefused = []byte{1}

// endFollow records a former follow. The followee keeps its row permanently, and must erase the user with it.
func endFollow(own rows.Owner, e *schemas.Edge, wasRefused bool) {
	row := rows.Name(layout.KindFormer, e.Other)
	switch {
	case e.Erased:
		own.Delete(row)
	case wasRefused:
		own.Put(row, formerRefused)
	default:
		own.Put(row, []byte{})
	}
}

// endBlock deletes a block that ended and records a former one; see endFollow.
func endBlock(own rows.Owner, register byte, e *schemas.Edge) {
	own.Delete(layout.GraphRow(register, e.Other))
	row := rows.Name(layout.KindFormer, e.Other)
	switch {
	case e.Erased:
		own.Delete(row)
	case register != layout.RegisterBlockedBy && own.Load(row) == nil:
		own.Put(row, []byte{})
	}
}
