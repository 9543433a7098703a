package fanout

import (
	"encoding/binary"
	"errors"

	"github.com/smartfeed/smartfeed/schemas"
)

// register is one of the two that an actor has towards a followee: last-write-wins by event time. The zero register has
// seen no event.
type register struct {
	live bool
	time schemas.Micros
	id   string // of the event that decided; never empty once there was one
}

// change is what an event did to a register.
type change int

const (
	none    change = iota // a repeat, or an event that others outrank
	renamed               // the same state by another event: a row changes, nobody else needs to know
	newer                 // a new state, or the same one with a newer time
)

// apply returns the register after an event of the given state. tie is the state that wins at the same time.
//
// Of two events with the same time and state the smaller id is kept, so that the row does not depend on their order. An
// event whose id is the one kept is a repeat, whatever else it says.
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

// parseRegister reads a row's value; nil is the zero register.
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
