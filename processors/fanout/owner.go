package fanout

import (
	"context"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// state is the state that a followee keeps between records, in one row.
type state struct {
	followers int    // live follow registers
	inactive  int    // edges of inactive followers
	steps     uint64 // number of the step that continues the running walk
	walking   bool   // a walk is running

	// These flags avoid lookups of rows that do not exist: most followees have published little.
	published bool // there are live recents
	withdrawn bool // there are withdrawn recents
	weighted  bool // a follower's weight is not 1

	// The mode; see pull.go.
	pulled         bool          // a publication starts no walk
	slotted        bool          // the recents are in slots …
	filling        bool          // … except those that the switch to pull has not processed
	pushing        bool          // the switch to push walks the recents in slots …
	pushed         schemas.PinID // … and this is the last one that it started to walk
	slots          int           // slots ever used
	slotsLive      int           // live recents in slots
	slotsWithdrawn int           // withdrawn recents in slots
}

// Pack implements packed.Row.
func (s *state) Pack(p *packed.Packer) {
	p.Version(2)
	p.Flags(&s.walking, &s.published, &s.withdrawn, &s.weighted, &s.pulled, &s.slotted, &s.filling, &s.pushing)
	packed.Int(p, &s.followers)
	packed.Int(p, &s.inactive)
	packed.Int(p, &s.steps)
	packed.Int(p, &s.slots)
	packed.Int(p, &s.slotsLive)
	packed.Int(p, &s.slotsWithdrawn)
	packed.String(p, &s.pushed)
}

// ownerState holds a followee's rows and state during one record.
type ownerState struct {
	rows.Owner
	state
}

// withState calls f with the state of the record's owner, and writes the state if f changed it.
func withState(tx *rows.Tx, f func(o *ownerState)) {
	o := ownerState{Owner: tx.Own()}
	stored, _ := rows.Load[state](o.Owner, []byte{rowState})
	o.state = stored
	f(&o)
	switch o.state {
	case stored:
	case state{}:
		o.Delete([]byte{rowState})
	default:
		rows.PutValue(o.Owner, []byte{rowState}, &o.state)
	}
}

// Followers returns the number of followers of a followee, including inactive ones.
func Followers(ctx context.Context, r rows.Reader, followee schemas.Followee) (n int, err error) {
	err = r.Read(ctx, string(followee), func(s rows.Snapshot) error {
		stored, _, err := rows.Value[state](s, []byte{rowState})
		n = stored.followers
		return err
	})
	return n, err
}

// deleteIfPresent deletes a row. It writes nothing if the row does not exist.
func (o *ownerState) deleteIfPresent(row []byte) {
	if o.Load(row) != nil {
		o.Delete(row)
	}
}
