package pools

import (
	"errors"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// view is a user's rows at one moment, as far as they determine the state of candidates.
type view struct {
	table
	user    schemas.UserID
	state   state
	graph   graph
	deleted DeletedUsers
	pulled  *Pulled         // nil: none
	oldest  schemas.Micros  // creation time from which pins have not expired
	below   schemas.Version // a trim drops candidates that a version below it deleted
	scratch *scratch

	// givenUp holds the pulled pins that were deferred for too long; nil: not read yet.
	givenUp map[schemas.PinID]struct{}

	// lately holds the pins that count as seen instead of those in the rows; nil: the rows are read.
	lately map[schemas.PinID]struct{}
}

// viewOf reads what all sources share. now is the time for the expiry. The view uses s for as long as it is used itself.
func viewOf(t table, user schemas.UserID, deleted DeletedUsers, now time.Time, expiry time.Duration, s *scratch) (*view, error) {
	v := &view{table: t, user: user, deleted: deleted, below: sweepsNone, scratch: s}
	var err error
	if v.state, err = readState(t); err != nil {
		return nil, err
	}
	if v.graph, err = readGraph(t, s); err != nil {
		return nil, err
	}
	v.oldest = -1 << 63
	if expiry > 0 {
		v.oldest = schemas.MicrosOf(now.Add(-expiry))
	}
	return v, nil
}

// judge returns the judge of the candidates of a source.
func (v *view) judge(source schemas.Source) judge {
	return judge{
		standing:  func(c *candidate) fate { return v.standing(source, c) },
		remembers: v.remembers,
		below:     v.below,
		bodies:    &v.scratch.bodies,
	}
}

func (v *view) standing(source schemas.Source, c *candidate) fate {
	switch {
	case v.state.refuses(c.created):
		return refused
	case c.created < v.oldest:
		return expired
	}
	switch reason := v.hiding(&c.candidateBody); {
	case reason == schemas.ReasonAuthorGone:
		return erased
	case reason != "" || !v.graph.justified(source, &c.Facets):
		return hidden
	}
	return waiting
}

// hiding returns why a pin is hidden from the user, whatever its source; "" if it is not.
func (v *view) hiding(c *candidateBody) schemas.Reason {
	switch {
	case v.deleted.Has(c.Author):
		return schemas.ReasonAuthorGone
	case c.deleted:
		return schemas.ReasonDeleted
	case c.Author == v.user:
		return schemas.ReasonOwn
	case v.graph.blocked(&c.Facets):
		return schemas.ReasonBlock
	}
	return ""
}

// remembers reports whether a pin was seen, or is pulled and was deferred for too long. Most users who receive deliveries
// have not been shown anything yet.
//
// If lately is set, it looks up only pulled pins in the rows: trims remove seen pins from the user's own rows, but nothing
// removes them from the slots of a followee.
func (v *view) remembers(c *candidate) (bool, error) {
	if ok, err := v.gaveUp(c); ok || err != nil {
		return ok, err
	}
	if v.state.Head == 0 {
		return false, nil
	}
	if v.lately != nil {
		if _, ok := v.lately[c.pin]; ok || c.place != noPlace {
			return ok, nil
		}
	}
	value, err := v.Get(rowOf(rowSeen, c.pin))
	return value != nil, err
}

// trim returns the rows of a source, best first, and the result of a trim.
func (v *view) trim(source schemas.Source, most int) ([]candidateRow, *trimmed, error) {
	list, err := v.scratch.candidateRows(v, source)
	if err == nil {
		err = v.rememberAll(len(v.scratch.found))
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := v.judge(source).trim(list, v.scratch.found, most)
	return list, t, err
}

// rememberAll loads all seen pins if that costs less than a lookup for each of n candidates.
func (v *view) rememberAll(n int) error {
	const scanned = 4 // rows that a scan reads in the time of one lookup
	shown := v.state.Head - v.state.Unseen
	if shown > scanned*int64(n) {
		return nil
	}
	return v.remember(int(shown))
}

// pool returns the n best candidates of a source. They are valid until the next call.
func (v *view) pool(source schemas.Source, n int) (best []candidate, err error) {
	defer func() { v.scratch.best = best }()
	into := v.scratch.best[:0]
	l, err := v.scratch.line(v, source, n)
	if err != nil {
		return nil, err
	}
	next := l.take
	if v.pulled != nil {
		m, done := v.pulled.merge(l, v.graph.follows)
		defer done()
		next = m.next
	}
	best, err = v.judge(source).bestOf(into, next, n)
	return best, errors.Join(err, l.err)
}

// candidates returns an iterator over all candidates of a source, including hidden and seen ones, best first. next returns
// nil at the end. The caller must call done.
func (v *view) candidates(source schemas.Source) (next func() *candidate, done func(), err error) {
	l, err := v.scratch.line(v, source, 0)
	if err == nil {
		err = l.deepen()
	}
	if err != nil {
		return nil, nil, err
	}
	pulled := v.pulled
	if pulled == nil {
		pulled = new(Pulled)
	}
	m, done := pulled.merge(l, v.graph.follows)
	return m.next, done, nil
}

// sources returns the sources that a user has or had candidates of, including pulled ones, by name.
func (v *view) sources() ([]schemas.Source, error) {
	list, err := sources(v)
	if err != nil || v.pulled == nil {
		return list, err
	}
	return v.pulled.sources(v.graph.follows, list), nil
}

// sourcesWith returns the sources and those of the offers, by name.
func (v *view) sourcesWith(o offers) ([]schemas.Source, error) {
	list, err := v.sources()
	for source := range o.by {
		if !slices.Contains(list, source) {
			list = append(list, source)
		}
	}
	slices.Sort(list)
	return list, err
}
