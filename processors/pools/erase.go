package pools

import (
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// eraseRows is how many rows of a deleted user go in one step.
const eraseRows = 2000

// erase works off a step of an erasure. Those of fan-out are none of this group's.
func (g *group) erase(tx *rows.Tx, e *schemas.Erasure) error {
	if e.Step != schemas.EraseUser && e.Step != schemas.EraseReader {
		return nil
	}
	if tx.Key() != string(e.User) {
		return schemas.Bad(fmt.Sprintf("erasure: key %q is not the user %q", tx.Key(), e.User))
	}
	g.deleted.Note(e.User, e.Time) // nothing that comes behind puts a row back
	own := tx.Own()
	if err := g.dropTimer(own); err != nil {
		return err
	}
	names, more, err := someRows(own, eraseRows)
	if err != nil {
		return err
	}
	for _, name := range names {
		if other, ok := toldOf(name); ok {
			if err := g.askToForget(tx, e, other); err != nil {
				return err
			}
		}
		if err := own.Delete(name); err != nil {
			return err
		}
	}
	if !more {
		return nil
	}
	next := schemas.Erasure{User: e.User, Step: schemas.EraseReader, Time: e.Time}
	return rows.Send(tx, g.streams.Erasures, tx.Key(), &next)
}

// dropTimer takes the timer back that looks whether the user is away.
func (g *group) dropTimer(own rows.Owner) error {
	p, err := readPresence(own)
	if err != nil || p == nil || p.looks == 0 {
		return err
	}
	return own.DropTimer(p.looks.Time(), []byte(timerAway))
}

// someRows returns the names of the first rows of an owner, at most so many, and whether there are others.
func someRows(own rows.Owner, most int) (names [][]byte, more bool, err error) {
	err = own.Scan(rows.Scan{Limit: most + 1}, func(row, _ []byte) bool {
		names = append(names, slices.Clone(row))
		return true
	})
	if len(names) > most {
		return names[:most], true, err
	}
	return names, false, err
}

// toldOf returns the followee that a row says the user followed or blocked, or does. (Who blocks the user is a followee's
// row, and goes there.)
func toldOf(row []byte) (schemas.ID, bool) {
	switch {
	case row[0] == rowFormer:
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

// part takes a dead register away. That there was one is kept: the followee has it for good, and is to forget it when the
// user is erased.
func part(own rows.Owner, register byte, e *schemas.Edge) error {
	if err := own.Delete(graphRow(register, e.Other)); err != nil {
		return err
	}
	switch {
	case e.Erased:
		return own.Delete(rowOf(rowFormer, e.Other))
	case register == regBlocked:
		return nil
	}
	return own.Put(rowOf(rowFormer, e.Other), []byte{})
}
