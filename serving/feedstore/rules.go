package feedstore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// These rules are the same for every store, so that stores fed by the same log hold the same data and return the same
// results.

// Check returns an error if a record of the batch has an empty id or an id with a zero byte, or if an edge is of an unknown
// kind. A store writes nothing of such a batch.
func Check(b Batch) error {
	var c checker
	each(b.Entries, func(e *schemas.FeedEntry) { c.ids(string(e.User)) })
	each(b.Edges, c.edge)
	each(b.Publications, func(p *schemas.Publication) { c.ids(string(p.Followee), string(p.Pin)) })
	each(b.Cards, func(card *schemas.Card) { c.ids(string(card.Pin)) })
	for _, d := range slices.Concat(b.Deleted, b.Erased) {
		c.ids(string(d.User))
	}
	return c.err
}

// each calls do for each record, without a copy.
func each[T any](records []T, do func(*T)) {
	for i := range records {
		do(&records[i])
	}
}

// checker keeps the first error.
type checker struct{ err error }

// ids rejects ids that would make two keys ambiguous.
func (c *checker) ids(ids ...string) {
	for _, id := range ids {
		if c.err == nil && (id == "" || strings.IndexByte(id, 0) >= 0) {
			c.err = fmt.Errorf("id %q: empty or with a zero byte", id)
		}
	}
}

func (c *checker) edge(e *schemas.Edge) {
	c.ids(string(e.User), string(e.Other))
	if _, known := registerByte(e.Kind); !known && c.err == nil {
		c.err = fmt.Errorf("edge of unknown kind %q", e.Kind)
	}
}

// Listed reports whether a version of a pin belongs in the list of followee.
func Listed(followee schemas.Followee, p *schemas.PinVersion) bool {
	return !p.Deleted && p.Has(followee)
}

// WinsTie reports whether a state of an edge wins over the other state at the same time: unfollow and block win. The
// function is its own inverse in live, so it also decodes the state.
func WinsTie(k schemas.EdgeKind, live bool) bool { return live != (k == schemas.FollowEdge) }

// MaxDead is how many dead places a List skips before it returns a short page. A place is dead when its pin is deleted, no
// longer belongs to the followee, or has another creation time.
const MaxDead = 500

// ErrBadPlace is returned when the text is not a valid place in a list.
var ErrBadPlace = errors.New("bad place")

// Place is the place of a pin in a list: newest first, ties by pin.
type Place struct {
	Created schemas.Micros
	Pin     schemas.PinID
}

// String returns the form in which a client passes a place from one page of a list to the next: "<created in micros>/<pin>".
func (p Place) String() string { return strconv.FormatInt(int64(p.Created), 10) + "/" + string(p.Pin) }

// ParsePlace parses the result of String. It returns ErrBadPlace for any other text.
func ParsePlace(text string) (Place, error) {
	created, pin, ok := strings.Cut(text, "/")
	n, err := strconv.ParseInt(created, 10, 64)
	if !ok || err != nil {
		return Place{}, fmt.Errorf("%w: %q: want <micros>/<pin>", ErrBadPlace, text)
	}
	return Place{Created: schemas.Micros(n), Pin: schemas.PinID(pin)}, nil
}

// Trimming decides from positions alone when and how far a feed is trimmed. The order of arrival does not matter, and
// nothing is read.
type Trimming struct{ keep, step int64 }

// NewTrimming returns a Trimming that keeps maxFeed items of a feed, and up to a tenth more.
func NewTrimming(maxFeed int) Trimming {
	return Trimming{keep: int64(maxFeed), step: int64(maxFeed) / 10}
}

// Cut is the range to trim from a feed: the positions from Position down. In a replay of the log, entries arrive below the
// trim position. The trim position hides them, and the repeated cuts of the replay delete them.
type Cut struct {
	Position int64          // positions at or below it are trimmed
	Time     schemas.Micros // of the latest entry that caused the cut: no trimmed entry should be later
	end      int64          // the lower end of the range that Pebble deletes, see trim
}

// Cuts returns the cut that the entries of each user cause. Most entries cause none.
func (t Trimming) Cuts(entries []schemas.FeedEntry) map[schemas.UserID]Cut {
	var cuts map[schemas.UserID]Cut
	for i := range entries {
		e := &entries[i]
		if e.Position%t.step != 0 || e.Position <= t.keep {
			continue
		}
		if cuts == nil {
			cuts = map[schemas.UserID]Cut{}
		}
		trimmed := e.Position - t.keep
		c := Cut{Position: trimmed, Time: e.Time, end: trimmed - t.keep}
		if old, ok := cuts[e.User]; ok {
			c = Cut{Position: max(c.Position, old.Position), Time: max(c.Time, old.Time), end: min(c.end, old.end)}
		}
		cuts[e.User] = c
	}
	return cuts
}
