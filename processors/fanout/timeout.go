package fanout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Timeouts. The record that continues a walk travels with a delivery and returns when the pools have applied the delivery.
// The owner keeps a copy of the record, and one timer for as long as walks of several steps run.
//
// If the same step is expected when the timer is set and when it fires, the owner sends the copy with the next number. The
// late record then has the wrong number and is dropped, so no follower receives a delivery twice. A partition that makes no
// progress, or a delivery in the dead-letter topic, delays the other followers by one to two timeouts for each step that
// waits for it.

// expected is the row of the step that continues the running walk. It exists as long as its timer is set.
type expected struct {
	timer  schemas.Micros // when the timer fires
	number uint64         // number of the step that was expected when the timer was set
	step   []byte         // record of the step that was expected last
}

func appendExpected(b []byte, e expected) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(e.timer))
	return append(binary.BigEndian.AppendUint64(b, e.number), e.step...)
}

// parseExpected parses a row's value. For nil it returns nil: no timer is set.
func parseExpected(value []byte) (*expected, error) {
	const head = 16
	switch {
	case value == nil:
		return nil, nil
	case len(value) < head:
		return nil, errors.New("parse expected step: cut short or malformed")
	}
	return &expected{
		timer: schemas.Micros(binary.BigEndian.Uint64(value)), number: binary.BigEndian.Uint64(value[8:]), step: value[head:],
	}, nil
}

// isLate reports whether the same step has been expected since the timer was set. steps is the number that is expected now.
// Once the step has returned, another step or none is expected.
func (e *expected) isLate(s *schemas.FanoutStep, steps uint64) bool {
	return e.number == steps && uint64(s.Number) == steps
}

// expectedRow returns the name of the row and of its timer.
func expectedRow() []byte { return []byte{rowStep} }

func (b *book) expected() (*expected, error) {
	value, err := b.Get(expectedRow())
	if err != nil {
		return nil, err
	}
	return parseExpected(value)
}

// expectStep stores a copy of the next step and sets the timer if none is set. Without Config.StepTimeout it does nothing.
func (g *group) expectStep(tx *rows.Tx, b *book, s *schemas.FanoutStep) error {
	if g.cfg.StepTimeout == 0 {
		return nil
	}
	step, err := g.streams.FanoutLoop.Encode(s)
	if err != nil {
		return fmt.Errorf("encode expected step: %w", err)
	}
	e, err := b.expected()
	if err != nil {
		return err
	}
	if e == nil {
		return g.setTimeout(tx, b, step)
	}
	e.step = step
	return b.Put(expectedRow(), appendExpected(nil, *e))
}

func (g *group) setTimeout(tx *rows.Tx, b *book, step []byte) error {
	at := tx.Time().Add(g.cfg.StepTimeout)
	e := expected{timer: schemas.MicrosOf(at), number: b.steps, step: step}
	if err := b.Put(expectedRow(), appendExpected(nil, e)); err != nil {
		return err
	}
	return b.SetTimer(e.timer.Time(), expectedRow())
}

// timer processes a timer of an owner.
func (g *group) timer(tx *rows.Tx, own rows.Owner, name []byte, _ time.Time) error {
	if followee, _ := followeeOf(tx.Key()); g.isGone(followee) {
		return nil
	}
	switch {
	case len(name) == 1 && name[0] == rowStep:
		return onBook(tx, func(b *book) error { return g.timeOut(tx, b) })
	case len(name) > 1 && name[0] == rowBudget:
		return g.backfillDeferred(tx, own, schemas.UserID(name[1:]))
	}
	return schemas.Bad(fmt.Sprintf("unknown timer %q", name))
}

// timeOut continues a walk whose step has not returned, and sets the timer again while walks run.
func (g *group) timeOut(tx *rows.Tx, b *book) error {
	e, err := b.expected()
	if err != nil || e == nil {
		return err
	}
	if !b.busy {
		return b.Delete(expectedRow())
	}
	s, err := g.streams.FanoutLoop.Decode(e.step)
	if err != nil {
		return fmt.Errorf("read expected step of %q: %w", tx.Key(), rows.Unreadable(expectedRow(), err))
	}
	if !e.isLate(s, b.steps) {
		return g.setTimeout(tx, b, e.step)
	}
	tx.Effect(effectTimedOut, 1)
	b.steps++
	s.Number = int64(b.steps)
	if err := g.loop(tx, tx.Key(), s); err != nil {
		return err
	}
	if e.step, err = g.streams.FanoutLoop.Encode(s); err != nil {
		return fmt.Errorf("encode expected step: %w", err)
	}
	return g.setTimeout(tx, b, e.step)
}
