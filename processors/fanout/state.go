package fanout

import (
	"encoding/binary"
	"errors"

	"github.com/smartfeed/smartfeed/processors/rows"
)

// state is the state that an owner keeps between records, in one row. An owner is a followee or one of its shards. A shard
// has only edges and walks.
type state struct {
	followers int    // live follow registers
	away      int    // edges of inactive followers among these rows
	steps     uint64 // number of the step that continues the running walk
	busy      bool   // a walk is running

	// These flags avoid lookups of rows that do not exist: most followees have published little.
	published bool // there are live recents
	withdrawn bool // there are withdrawn recents
	weighed   bool // a follower's weight is not 1

	spread bool // edges are in the shards …
	moving bool // … except those that are still to be moved

	pulled  bool // a publication starts no walk
	slotted bool // the recents are in slots …
	filling bool // … except those that are still to be put there
	back    int  // walks of a switch to push that have not finished
	slots   int  // slots ever used
	here    int  // live recents in slots …
	gone    int  // … and withdrawn ones
}

func (s *state) flags() [9]*bool {
	return [...]*bool{&s.busy, &s.spread, &s.moving, &s.pulled, &s.slotted, &s.published, &s.withdrawn, &s.weighed, &s.filling}
}

func (s *state) numbers() [6]*int {
	return [...]*int{&s.followers, &s.away, &s.back, &s.slots, &s.here, &s.gone}
}

// appendState appends the row's value as uvarints: the flags (one bit each), the step number, and the other numbers.
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

// parseState parses a row's value. For nil it returns the zero state.
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

// reader reads numbers from a row. After the first error it returns zeros and bad is true.
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

// book is an owner's rows and state during one record.
type book struct {
	rows.Owner
	state
	stored state
	shard  bool // the owner is a shard
}

// onBook calls f with the book of the record's owner, and writes the state if f changed it.
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
