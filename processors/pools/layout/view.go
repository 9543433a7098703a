package layout

import (
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// DeletedUsers is the set of deleted users. It must be safe for concurrent use.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
	Len() int // number of deleted users; it never decreases
}

// View is a user's rows at one moment, as far as they determine the state of candidates.
type View struct {
	Table
	User    schemas.UserID
	State   State
	Graph   Graph
	Deleted DeletedUsers
	Oldest  schemas.Micros // creation time from which pins have not expired
	Buffers *Buffers

	// givenUp holds the pulled pins that were deferred for too long; nil: not read yet.
	expired map[schemas.PinID]struct{}

	// lately holds the pins that count as seen instead of those in the rows; nil: the rows are read.
	RecentlySeen map[schemas.PinID]struct{}
}

// NewView reads what all sources share. now is the time for the expiry. The view uses s for as long as it is used itself.
func NewView(t Table, user schemas.UserID, deleted DeletedUsers, now time.Time, expiry time.Duration, s *Buffers) (*View, error) {
	v := &View{Table: t, User: user, Deleted: deleted, Buffers: s}
	var err error
	if v.State, err = ReadState(t); err != nil {
		return nil, err
	}
	if v.Graph, err = ReadGraph(t, s); err != nil {
		return nil, err
	}
	v.Oldest = -1 << 63
	if expiry > 0 {
		v.Oldest = schemas.MicrosOf(now.Add(-expiry))
	}
	return v, nil
}

// Standing returns the state of a candidate of a source according to the rows, without the seen pins.
func (v *View) Standing(source schemas.Source, c *Candidate) fate {
	switch {
	case v.State.Refuses(c.Created):
		return Refused
	case c.Created < v.Oldest:
		return Expired
	}
	switch reason := v.Hiding(&c.Content); {
	case reason == schemas.ReasonAuthorGone:
		return Erased
	case reason != "" || !v.Graph.Justified(source, &c.Facets):
		return Hidden
	}
	return Waiting
}

// Hiding returns why a pin is hidden from the user, whatever its source; "" if it is not.
func (v *View) Hiding(c *Content) schemas.Reason {
	switch {
	case v.Deleted.Has(c.Author):
		return schemas.ReasonAuthorGone
	case c.Deleted:
		return schemas.ReasonDeleted
	case c.Author == v.User:
		return schemas.ReasonOwn
	case v.Graph.blocked(&c.Facets):
		return schemas.ReasonBlock
	}
	return ""
}

// HasSeen reports whether a pin was seen, or is pulled and was deferred for too long. Most users who receive deliveries
// have not been shown anything yet.
//
// If lately is set, it looks up only pulled pins in the rows: trims remove seen pins from the user's own rows, but nothing
// removes them from the slots of a followee.
func (v *View) HasSeen(c *Candidate) (bool, error) {
	if ok, err := v.hasExpired(c); ok || err != nil {
		return ok, err
	}
	if v.State.Head == 0 {
		return false, nil
	}
	if v.RecentlySeen != nil {
		if _, ok := v.RecentlySeen[c.Pin]; ok || c.Place != NoPlace {
			return ok, nil
		}
	}
	value, err := v.Get(RowName(KindSeen, c.Pin))
	return value != nil, err
}

// LoadAllSeen loads all seen pins if that costs less than a lookup for each of n candidates.
func (v *View) LoadAllSeen(n int) error {
	const scanned = 4 // rows that a scan reads in the time of one lookup
	shown := v.State.Head - v.State.Unseen
	if shown > scanned*int64(n) {
		return nil
	}
	return v.LoadRecentlySeen(int(shown))
}

// Best appends the n best waiting, unseen candidates to list, which must be empty. next returns the candidates, best first,
// and nil at the end.
func (v *View) Best(source schemas.Source, list []Candidate, next func() *Candidate, n int) ([]Candidate, error) {
	for len(list) < n {
		c := next()
		if c == nil {
			break
		}
		if err := c.Open(&v.Buffers.Bodies); err != nil {
			return nil, err
		}
		if v.Standing(source, c) != Waiting {
			continue
		}
		seen, err := v.HasSeen(c)
		if err != nil {
			return nil, err
		}
		if !seen {
			list = append(list, *c)
		}
	}
	return list, nil
}
