package fanout

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Timeouts. The record that continues a walk travels with a delivery and returns when the pools have applied the delivery.
// The owner keeps a copy of the record, and one timer for as long as walks of several steps run.
//
// If the same step is expected when the timer is set and when it fires, the owner sends the copy with the next number. The
// late record then has the wrong number and is dropped, so no follower receives a delivery twice. A partition without
// progress, or a delivery in the dead-letter topic, delays the other followers by one to two timeouts for each affected step.

// expected is the row of the step that continues the running walk. It exists as long as its timer is set.
type expected struct {
	timer  schemas.Micros // when the timer fires
	number uint64         // number of the step that was expected when the timer was set
	step   []byte         // the Continuation that was expected last
}

// Pack implements packed.Row.
func (e *expected) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Int(p, &e.timer)
	packed.Int(p, &e.number)
	p.Bytes(&e.step)
}

// isLate reports whether the same step has been expected since the timer was set. steps is the currently expected number.
// Once the step has returned, another step or none is expected.
func (e *expected) isLate(w *schemas.Walk, steps uint64) bool {
	return e.number == steps && uint64(w.Number) == steps
}

// expectedRow returns the name of the row and of its timer.
func expectedRow() []byte { return []byte{rowStep} }

// expectStep stores a copy of the next step and sets the timer if none is set.
func (g *group) expectStep(tx *rows.Tx, o *ownerState, w *schemas.Walk) {
	e, found := rows.Load[expected](o.Owner, expectedRow())
	step, bad := g.streams.FanoutLoop.Encode(&schemas.Continuation{Followee: schemas.Followee(tx.Key()), Walk: w})
	tx.Fail(bad)
	e.step = step
	if !found {
		g.setTimeout(tx, o, e)
		return
	}
	rows.PutValue(o.Owner, expectedRow(), &e)
}

// setTimeout sets the timer of the expected step.
func (g *group) setTimeout(tx *rows.Tx, o *ownerState, e expected) {
	e.timer, e.number = schemas.MicrosOf(tx.Time().Add(g.cfg.StepTimeout)), o.steps
	rows.PutValue(o.Owner, expectedRow(), &e)
	o.SetTimer(e.timer.Time(), expectedRow())
}

// timer processes a timer of an owner.
func (g *group) timer(tx *rows.Tx, own rows.Owner, name []byte, _ time.Time) error {
	if g.isDeleted(schemas.Followee(tx.Key())) {
		return nil
	}
	switch {
	case len(name) == 1 && name[0] == rowStep:
		withState(tx, func(o *ownerState) { g.stepTimeout(tx, o) })
	case len(name) > 1 && name[0] == rowBudget:
		g.deferredBackfill(tx, own, schemas.UserID(name[1:]))
	default:
		return schemas.Bad(fmt.Sprintf("timer %q: want a timer of this group", name))
	}
	return nil
}

// stepTimeout continues a walk whose step has not returned, and sets the timer again while walks run.
func (g *group) stepTimeout(tx *rows.Tx, o *ownerState) {
	e, found := rows.Load[expected](o.Owner, expectedRow())
	if !found {
		return
	}
	if !o.walking {
		o.Delete(expectedRow())
		return
	}
	c, bad := g.streams.FanoutLoop.Decode(e.step)
	if bad != nil {
		tx.Fail(fmt.Errorf("read expected step of %q: %w", tx.Key(), rows.Unreadable(expectedRow(), bad)))
		return
	}
	if c.Walk == nil || !e.isLate(c.Walk, o.steps) {
		g.setTimeout(tx, o, e)
		return
	}
	tx.Effect(effectTimedOut, 1)
	o.steps++
	c.Walk.Number = int64(o.steps)
	e.step, bad = g.streams.FanoutLoop.Encode(c)
	tx.Fail(bad)
	tx.Emit(topics.FanoutLoop, tx.Key(), e.step)
	g.setTimeout(tx, o, e)
}
