package pools

import (
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Erasing, with a generation that is being built. The active one takes rows away a step at a time, and tells the followees that
// they name; when it has none left it asks for the rest to go. Until then the silent one keeps the rows that name followees:
// it may have come to other rows when it becomes active, and then has to tell them. A timer takes away what it still has at the
// end, as nobody hears what a silent generation asks for.

// eraseRows is how many rows of a deleted user go in one step at most.
const eraseRows = 2000

// timerErase is the timer that a silent generation goes on by.
const timerErase = "erase"

// erase works off a step of an erasure. Those of fan-out are none of this group's.
func (g *group) erase(tx *rows.Tx, e *schemas.Erasure) error {
	switch e.Step {
	case schemas.EraseUser, schemas.EraseReader, schemas.EraseRest:
	default:
		return nil
	}
	if tx.Key() != string(e.User) {
		return schemas.Bad(fmt.Sprintf("erasure: key %q is not the user %q", tx.Key(), e.User))
	}
	g.deleted.Note(e.User, e.Time) // nothing that comes behind puts a row back
	own := tx.Own()
	if err := g.dropTimers(tx, own, e); err != nil {
		return err
	}
	leave := keepNone
	if tx.Silent() && e.Step != schemas.EraseRest {
		leave = namesFollowee
	}
	more, err := g.eraseSome(tx, own, e, leave)
	switch {
	case err != nil:
		return err
	case more && tx.Silent() && e.Step == schemas.EraseRest:
		return own.SetTimer(tx.Time(), []byte(timerErase))
	case !more && e.Step == schemas.EraseRest:
		return nil
	}
	next := schemas.Erasure{User: e.User, Step: schemas.EraseReader, Time: e.Time}
	if !more || e.Step == schemas.EraseRest {
		next.Step = schemas.EraseRest
	}
	return rows.Send(tx, g.streams.Erasures, tx.Key(), &next)
}

// eraseSome takes the next rows away but those that leave says, tells the followees that they name, and says whether
// there are others.
func (g *group) eraseSome(tx *rows.Tx, own rows.Owner, e *schemas.Erasure, leave func(row []byte) bool) (more bool, err error) {
	names, more, err := someRows(own, nil, eraseRows, leave)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if !roomy(tx) {
			return true, nil
		}
		if other, ok := toldOf(name); ok {
			if err := g.askToForget(tx, e, other); err != nil {
				return false, err
			}
		}
		if err := own.Delete(name); err != nil {
			return false, err
		}
	}
	return more, nil
}

// eraseOn goes on by the timer.
func (g *group) eraseOn(tx *rows.Tx, own rows.Owner, at time.Time) error {
	e := &schemas.Erasure{User: schemas.UserID(tx.Key()), Time: schemas.MicrosOf(at)}
	more, err := g.eraseSome(tx, own, e, keepNone)
	if err != nil || !more {
		return err
	}
	return own.SetTimer(tx.Time().Add(time.Millisecond), []byte(timerErase)) // another than the one that has just fired
}

// dropTimers takes the timers of the user back.
func (g *group) dropTimers(tx *rows.Tx, own rows.Owner, e *schemas.Erasure) error {
	if e.Step == schemas.EraseUser {
		if err := dropSweeps(tx, own, e.User); err != nil {
			return err
		}
	}
	p, err := readPresence(own)
	if err != nil || p == nil || p.looks == 0 {
		return err
	}
	return own.DropTimer(p.looks.Time(), []byte(timerAway))
}

// someRows returns the names of the first rows of an owner with a prefix, at most so many, but of those that leave says, and
// whether there are others.
func someRows(own rows.Owner, prefix []byte, most int, leave func(row []byte) bool) (names [][]byte, more bool, err error) {
	err = own.Scan(rows.Scan{Prefix: prefix}, func(row, _ []byte) bool {
		if !leave(row) {
			more = len(names) == most
			if !more {
				names = append(names, slices.Clone(row))
			}
		}
		return !more
	})
	return names, more, err
}

func keepNone([]byte) bool { return false }

// namesFollowee says whether a followee is told when the row goes.
func namesFollowee(row []byte) bool {
	_, ok := toldOf(row)
	return ok
}

// toldOf returns the followee that a row says the user followed or blocked, or does. (Who blocks the user is a followee's
// row, and goes there.)
func toldOf(row []byte) (schemas.ID, bool) {
	switch {
	case row[0] == rowFormer, row[0] == rowRefused:
		return schemas.ID(row[1:]), true
	case row[0] == rowGraph && len(row) > 2 && row[1] != regBlocked:
		return schemas.ID(row[2:]), true
	}
	return "", false
}

func (g *group) askToForget(tx *rows.Tx, e *schemas.Erasure, followee schemas.ID) error {
	forget := schemas.Erasure{User: e.User, Step: schemas.EraseFollower, Time: e.Time}
	return rows.Send(tx, g.streams.Erasures, string(followee), &forget)
}

// forgetMe answers a followee that has an edge of a deleted user: it had not heard of the delete.
func (g *group) forgetMe(tx *rows.Tx, e *schemas.Edge) error {
	if e.Erased || e.Kind == schemas.BlockedEdge {
		return nil
	}
	return g.askToForget(tx, &schemas.Erasure{User: e.User, Time: e.Time}, e.Other)
}

// formerRefused is the value of a rowFormer whose last follow was refused when it ended.
var formerRefused = []byte{1}

// endFollow keeps that there was a follow: the followee has it for good, and is to forget it when the user is erased.
func endFollow(own rows.Owner, e *schemas.Edge, wasRefused bool) error {
	row := rowOf(rowFormer, e.Other)
	switch {
	case e.Erased:
		return own.Delete(row)
	case wasRefused:
		return own.Put(row, formerRefused)
	}
	return own.Put(row, []byte{})
}

// endBlock takes a dead block away, and keeps that there was one, see endFollow.
func endBlock(own rows.Owner, register byte, e *schemas.Edge) error {
	if err := own.Delete(graphRow(register, e.Other)); err != nil {
		return err
	}
	row := rowOf(rowFormer, e.Other)
	switch {
	case e.Erased:
		return own.Delete(row)
	case register == regBlocked:
		return nil
	}
	if former, err := own.Get(row); err != nil || former != nil {
		return err
	}
	return own.Put(row, []byte{})
}
