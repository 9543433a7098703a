package layout

import (
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// View is a snapshot of the rows of a user that determine the state of candidates.
type View struct {
	Table
	Viewer  visibility.Viewer
	State   State
	Deleted visibility.GrowingDeletedUsers
	Buffers *Buffers

	// expired holds the pulled pins that were deferred for too long; nil: not read yet.
	expired map[schemas.PinID]struct{}

	// unreported holds the seen pins whose report is awaited; nil: not read.
	unreported map[schemas.PinID]struct{}

	// RecentlySeen holds the pins that count as seen; nil: the rows are read instead.
	RecentlySeen map[schemas.PinID]struct{}
}

// NewView reads the rows that all sources share. now is the time for the expiry. The view uses s until its last use.
func NewView(t Table, user schemas.UserID, deleted visibility.GrowingDeletedUsers, now time.Time, expiry time.Duration, s *Buffers) (*View, error) {
	v := &View{Table: t, Deleted: deleted, Buffers: s}
	g, err := ReadGraph(t, s)
	if err != nil {
		return nil, err
	}
	if v.State, err = ReadState(t); err != nil {
		return nil, err
	}
	v.Viewer = visibility.NewViewer(user, g, deleted)
	v.Viewer.SeenTrimmed = v.State.SeenTrimmedBefore()
	if expiry > 0 {
		v.Viewer.Expired = schemas.MicrosOf(now.Add(-expiry))
	}
	return v, nil
}

// Open parses the facets of a candidate. Hides needs them.
func (v *View) Open(c *Candidate) error { return c.open(&v.Buffers.bodies) }

// Hides returns why a candidate of a source must not be shown, or "" if only a seen row can prevent it; see HasSeen.
func (v *View) Hides(source schemas.Source, c *Candidate) schemas.Reason {
	return v.Viewer.Hides(&c.Content.Pin, visibility.CandidateEdges(source))
}

// HasSeen reports whether a pin was seen, or is pulled and was deferred for too long. It needs no lookup for a user without a
// visit, as most users who receive deliveries are.
//
// If RecentlySeen is set, it looks up only pulled pins in the rows: trims remove seen pins from the user's own rows, but nothing
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
	value, err := v.Get(rows.Name(KindSeen, c.Pin))
	return value != nil, err
}

// LoadUnreported loads the seen pins that can become candidates again, because their report is awaited.
func (v *View) LoadUnreported() error {
	v.unreported = map[schemas.PinID]struct{}{}
	return v.Scan(rows.Scan{Prefix: []byte{KindUnreported}}, func(_, pins []byte) bool {
		for _, pin := range ParseExpired(pins) {
			v.unreported[pin] = struct{}{}
		}
		return true
	})
}

// AwaitsReport reports whether LoadUnreported has loaded the pin.
func (v *View) AwaitsReport(pin schemas.PinID) bool {
	_, ok := v.unreported[pin]
	return ok
}

// LoadAllSeen loads all seen pins if that costs less than a lookup for each of n candidates.
func (v *View) LoadAllSeen(n int) error {
	const scanned = 4 // rows that a scan reads in the time of one lookup
	shown := v.State.Head - v.State.SeenTrimmed
	if shown > scanned*int64(n) {
		return nil
	}
	return v.LoadRecentlySeen(int(shown))
}

// Best appends the n best candidates that may be shown to list, which must be empty. next returns the candidates, best first,
// and nil at the end.
func (v *View) Best(source schemas.Source, list []Candidate, next func() *Candidate, n int) ([]Candidate, error) {
	for len(list) < n {
		c := next()
		if c == nil {
			break
		}
		shows, err := v.Shows(source, c)
		if err != nil {
			return nil, err
		}
		if shows {
			list = append(list, *c)
		}
	}
	return list, nil
}

// Shows reports whether a candidate of a source may be shown. It parses the facets.
func (v *View) Shows(source schemas.Source, c *Candidate) (bool, error) {
	if err := v.Open(c); err != nil || v.Hides(source, c) != "" {
		return false, err
	}
	seen, err := v.HasSeen(c)
	return !seen, err
}
