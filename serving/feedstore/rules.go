package feedstore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// The rules that every store keeps alike, so that several of them, fed by the same log, hold and answer the same.

// Check returns an error when a record of the batch has an empty id or one with a zero byte, or an edge is of an unknown
// kind. A store writes nothing of such a batch.
func Check(b Batch) error {
	var c checker
	for i := range b.Entries {
		c.ids(string(b.Entries[i].User))
	}
	for i := range b.Edges {
		e := &b.Edges[i]
		c.ids(string(e.User), string(e.Other))
		if _, known := registerByte(e.Kind); !known && c.err == nil {
			c.err = fmt.Errorf("edge of unknown kind %q", e.Kind)
		}
	}
	for i := range b.Publications {
		c.ids(string(b.Publications[i].Followee), string(b.Publications[i].Pin))
	}
	for i := range b.Cards {
		c.ids(string(b.Cards[i].Pin))
	}
	for i := range b.Deleted {
		c.ids(string(b.Deleted[i].User))
	}
	for i := range b.Erased {
		c.ids(string(b.Erased[i].User))
	}
	return c.err
}

// checker keeps the first problem.
type checker struct{ err error }

// ids refuses what would run two keys into one another.
func (c *checker) ids(ids ...string) {
	for _, id := range ids {
		if c.err == nil && (id == "" || strings.IndexByte(id, 0) >= 0) {
			c.err = fmt.Errorf("id %q: empty or with a zero byte", id)
		}
	}
}

// Listed says whether a version of a pin belongs in the list of followee.
func Listed(followee schemas.Followee, p *schemas.PinVersion) bool {
	return !p.Deleted && (string(p.Author) == string(followee) || string(p.Board) == string(followee) ||
		slices.Contains(p.Interests, schemas.InterestID(followee)))
}

// WinsTie says whether the state of an edge wins over the other one at the same time: unfollow and block do. It is its
// own inverse in live, so it also reads the state back.
func WinsTie(k schemas.EdgeKind, live bool) bool { return live != (k == schemas.FollowEdge) }

// MaxDead is how many places without a pin a List passes over before it gives a short page. A place dies when
// its pin is deleted, leaves the followee, or turns out to have been created at another time.
const MaxDead = 500

// ErrBadPlace says that a list cannot be continued from the text given.
var ErrBadPlace = errors.New("bad place")

// Place is where a pin stands in a list: newest first, ties by pin.
type Place struct {
	Created schemas.Micros
	Pin     schemas.PinID
}

// String is the form in which a reader carries a place from one page of a list to the next: "<created in micros>/<pin>".
func (p Place) String() string { return strconv.FormatInt(int64(p.Created), 10) + "/" + string(p.Pin) }

// ParsePlace reads what String wrote; anything else is an ErrBadPlace.
func ParsePlace(text string) (Place, error) {
	created, pin, ok := strings.Cut(text, "/")
	n, err := strconv.ParseInt(created, 10, 64)
	if !ok || err != nil {
		return Place{}, fmt.Errorf("%w: %q: want <micros>/<pin>", ErrBadPlace, text)
	}
	return Place{Created: schemas.Micros(n), Pin: schemas.PinID(pin)}, nil
}

// Trimming decides by positions alone when a feed is trimmed and how far, so that the order of arrival does not matter
// and nothing is read.
type Trimming struct{ keep, step int64 }

// NewTrimming keeps maxFeed items of a feed, and up to a tenth more.
func NewTrimming(maxFeed int) Trimming {
	return Trimming{keep: int64(maxFeed), step: int64(maxFeed) / 10}
}

// Cut is what is trimmed of a feed: the positions from Floor down. What arrives below the floor later, because an old
// part of the log is read again, is hidden by the floor, and goes with the cuts that this part brings about again.
type Cut struct {
	Floor int64          // positions at or below it are trimmed
	Time  schemas.Micros // of the latest entry that brought the cut about: no trimmed entry should be later
	end   int64          // how far Pebble deletes, see trim
}

// Cuts returns what the entries of each user bring about; nothing for most.
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
		floor := e.Position - t.keep
		c := Cut{Floor: floor, Time: e.Time, end: floor - t.keep}
		if old, ok := cuts[e.User]; ok {
			c = Cut{Floor: max(c.Floor, old.Floor), Time: max(c.Time, old.Time), end: min(c.end, old.end)}
		}
		cuts[e.User] = c
	}
	return cuts
}
