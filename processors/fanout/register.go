package fanout

import (
	"encoding/binary"
	"errors"

	"github.com/smartfeed/smartfeed/schemas"
)

// register is one of an actor's two registers at a followee: last-write-wins by event time. The zero register has seen no
// event.
type register struct {
	live bool
	time schemas.Micros
	id   string // id of the event that set the state; not empty after the first event
}

// change is the effect of an event on a register.
type change int

const (
	none    change = iota // a repeat, or an event that loses
	renamed               // the same state with a smaller event id: the row changes, but nothing is forwarded
	newer                 // a new state, or the same state with a newer time
)

// apply returns the register after event e. tie is the state that wins at equal times.
//
// Of two events with the same time and state, the one with the smaller id is kept, so that the row does not depend on their
// order. An event with the id of the kept event is a repeat, whatever its other fields are.
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

// appendRegister appends the row's value: state (1 byte), time (8 bytes), id.
func appendRegister(b []byte, r register) []byte {
	state := byte(0)
	if r.live {
		state = 1
	}
	return append(binary.BigEndian.AppendUint64(append(b, state), uint64(r.time)), r.id...)
}

// parseRegister parses a row's value. For nil it returns the zero register.
func parseRegister(value []byte) (register, error) {
	const head = 9
	switch {
	case value == nil:
		return register{}, nil
	case len(value) <= head || value[0] > 1:
		return register{}, errors.New("parse register: cut short or malformed")
	}
	return register{
		live: value[0] == 1,
		time: schemas.Micros(binary.BigEndian.Uint64(value[1:])),
		id:   string(value[head:]),
	}, nil
}
