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
	steps     uint64 // the number of the step that continues the walk with the turn
	busy      bool   // a walk has the turn

	// What there is none of need not be looked for: most follows are of those who have published little.
	published bool // there are recents
	withdrawn bool // there are some that are gone
	weighed   bool // some follower's weight is not 1

	spread bool // edges stand in the shards …
	moving bool // … but for some that are still to be moved there

	pulled  bool // a publication begins no walk
	slotted bool // the recents stand in slots …
	filling bool // … but for some that are still to be put there
	back    int  // walks under way that bring back what was pulled
	slots   int  // ever used
	here    int  // recents in slots …
	gone    int  // … and of those that are gone
}

func (s *state) flags() [9]*bool {
	return [...]*bool{&s.busy, &s.spread, &s.moving, &s.pulled, &s.slotted, &s.published, &s.withdrawn, &s.weighed, &s.filling}
}

func (s *state) numbers() [6]*int {
	return [...]*int{&s.followers, &s.away, &s.back, &s.slots, &s.here, &s.gone}
}

// appendState appends the row's value: flags, one bit each, the number of walks, and the other numbers, as uvarints.
func appendState(b []byte, s state) []byte {
	var flags uint64
	for i, set := range s.flags() {
		if *set {
			flags |= 1 << i
		}
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, flags), s.steps)
	for _, n := range s.numbers() {
		b = binary.AppendUvarint(b, uint64(*n))
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
	r := reader{rest: value}
	flags := r.number()
	for i, set := range s.flags() {
		*set = flags>>i&1 == 1
	}
	s.steps = r.number()
	for _, n := range s.numbers() {
		*n = int(r.number())
	}
	if r.bad || len(r.rest) > 0 || flags>>len(s.flags()) > 0 {
		return state{}, errState
	}
	return s, nil
}

// reader takes numbers off a row. After the first problem it yields zeros and is bad.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if r.bad = r.bad || size <= 0 || n >= 1<<62; r.bad {
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// book is an owner's rows with its state, as one record sees and leaves them.
type book struct {
	rows.Owner
	state
	stored state
	shard  bool // of a followee, not its own
}

// onBook calls f with the record's own book and writes the state if f has changed it.
func onBook(tx *rows.Tx, f func(b *book) error) error {
	b := book{Owner: tx.Own()}
	_, b.shard = followeeOf(tx.Key())
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
	if b.state == (state{}) {
		return b.Delete([]byte{rowState})
	}
	return b.Put([]byte{rowState}, appendState(nil, b.state))
}
