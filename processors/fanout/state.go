package fanout

import (
	"encoding/binary"
	"errors"

	"github.com/smartfeed/smartfeed/processors/rows"
)

// state is what an owner's edges, walks and recents need to know from one record to the next: one row. An owner is a
// followee, or one of its shards, which has edges and walks alone.
type state struct {
	followers int    // live follow registers
	away      int    // edges among these rows of those who are away
	queued    uint64 // walks that ever had to wait: numbers them
	busy      bool   // a walk has the turn

	spread bool // edges stand in the shards …
	moving bool // … but for some that are still to be moved there

	pulled  bool // a publication begins no walk
	slotted bool // the recents stand in slots
	back    int  // walks under way that bring back what was pulled
	slots   int  // ever used
	here    int  // recents in slots …
	gone    int  // … and of those that are gone
}

const (
	flagBusy = 1 << iota
	flagSpread
	flagMoving
	flagPulled
	flagSlotted
)

// appendState appends the row's value: flags (1 byte), then each number as uvarint.
func appendState(b []byte, s state) []byte {
	flags := byte(0)
	for bit, set := range map[byte]bool{
		flagBusy: s.busy, flagSpread: s.spread, flagMoving: s.moving, flagPulled: s.pulled, flagSlotted: s.slotted,
	} {
		if set {
			flags |= bit
		}
	}
	b = binary.AppendUvarint(append(b, flags), s.queued)
	for _, n := range []int{s.followers, s.away, s.back, s.slots, s.here, s.gone} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

var errState = errors.New("parse state of a followee: cut short or malformed")

// parseState reads a row; nil is the zero state.
func parseState(value []byte) (state, error) {
	var s state
	if value == nil {
		return s, nil
	}
	if len(value) == 0 || value[0] >= flagSlotted<<1 {
		return s, errState
	}
	has := func(bit byte) bool { return value[0]&bit != 0 }
	s.busy, s.spread, s.moving = has(flagBusy), has(flagSpread), has(flagMoving)
	s.pulled, s.slotted = has(flagPulled), has(flagSlotted)
	rest := value[1:]
	var numbers [7]uint64
	for i := range numbers {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n >= 1<<62 {
			return state{}, errState
		}
		numbers[i], rest = n, rest[size:]
	}
	if len(rest) > 0 {
		return state{}, errState
	}
	s.queued = numbers[0]
	for i, to := range []*int{&s.followers, &s.away, &s.back, &s.slots, &s.here, &s.gone} {
		*to = int(numbers[i+1])
	}
	return s, nil
}

// book is an owner's rows with its state, as one record sees and leaves them.
type book struct {
	rows.Owner
	state
	stored state
}

// onBook calls f with the record's own book and writes the state if f has changed it.
func onBook(tx *rows.Tx, f func(b *book) error) error {
	b := book{Owner: tx.Own()}
	value, err := b.Get([]byte{rowState})
	if err != nil {
		return err
	}
	if b.stored, err = parseState(value); err != nil {
		return err
	}
	b.state = b.stored
	if err := f(&b); err != nil || b.state == b.stored {
		return err
	}
	return b.Put([]byte{rowState}, appendState(nil, b.state))
}
