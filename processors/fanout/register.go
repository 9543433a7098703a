package fanout

import (
	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// register is one of an actor's two registers at a followee: last-write-wins by event time. The zero register has no event.
type register struct {
	live bool
	time schemas.Micros
	id   string // id of the event that set the state; not empty after the first event
}

// change is the effect of an event on a register.
type change int

const (
	none    change = iota // a repeat, or an older event
	renamed               // the same state with a smaller event id: the row changes, but nothing is forwarded
	newer                 // a new state, or the same state with a newer time
)

// apply returns the register after event e. tie is the state that wins at equal times.
//
// The row must not depend on the order of events. Therefore, of two events with the same time and state, the one with the
// smaller id is kept. An event with the id of the kept event is a repeat, regardless of its other fields.
func (r register) apply(e register, tie bool) (register, change) {
	switch {
	case r.id == "":
		return e, newer
	case e.id == r.id, e.time < r.time:
		return r, none
	case e.time > r.time, e.live != r.live && e.live == tie:
		return e, newer
	case e.live == r.live && e.id < r.id:
		return e, renamed
	}
	return r, none
}

// Pack implements packed.Row.
func (r *register) Pack(p *packed.Packer) {
	p.Version(2)
	p.Flags(&r.live)
	packed.Int(p, &r.time)
	packed.String(p, &r.id)
}

// registerOf returns a user's register of a kind.
func registerOf(own rows.Owner, kind byte, user schemas.UserID) register {
	r, _ := rows.Load[register](own, rows.Name(kind, user))
	return r
}
