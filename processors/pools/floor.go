package pools

import (
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Floors. Whoever follows many is delivered far more than a pool holds, and what cannot enter would be put, sent to the
// changelog, compacted, and trimmed away again. So a trim that finds a pool full remembers, in memory alone, where its
// last candidate stands: the floor. A pin that is new, waits and stands below is dropped as the trim would have dropped
// it, before it becomes a row. Nothing is read for that, and nothing depends on it: a pool whose floor is not known, as
// after a start, takes every row.
//
// A floor holds as long as candidates are only added: it is forgotten with every record of the user that may make room,
// with every version of a pin but its first, with every deletion of a user, and when the pool's oldest candidate expires.

// floors are what the callbacks of a partition remember of its pools.
type floors struct {
	users map[schemas.UserID][]level
	held  int // weight of all levels

	// counts has the number of rows put into pools without a known level, by slot. Pools that share a slot are trimmed the
	// earlier for it.
	counts [1 << slotBits]uint32
}

const slotBits = 14

// mostFloors bounds how many levels a partition remembers, by weight: some 100 bytes each, 3 MiB. Beyond it a new level takes the
// place of any other.
const mostFloors = 1 << 15

// level says how full a pool is that was full at its last trim, or is still to be trimmed.
type level struct {
	source schemas.Source
	room   int    // rows that are put before it is trimmed; the next row is the last of them when it is not positive
	floor  *floor // nil: not known any more
}

// floor is where a full pool ends.
type floor struct {
	place   string         // of the last candidate that waits
	holds   int            // number of deleted users for which that is so
	oldest  schemas.Micros // creation of the oldest that waits
	user    *view          // without rows
	follows int            // edges and blocks that it knows
}

func newFloors() any { return &floors{users: map[schemas.UserID][]level{}} }

// floorsOf returns what the partition of a record remembers.
func floorsOf(tx *rows.Tx) *floors {
	f, _ := tx.Memory().(*floors)
	return f
}

// weight is what a level counts for.
func (l *level) weight() int {
	if l.floor == nil {
		return 1
	}
	return 2 + l.floor.follows
}

// of returns the level of a user's pool, nil if it is not known. It is valid until something is kept.
func (f *floors) of(user schemas.UserID, source schemas.Source) *level {
	if len(f.users) == 0 {
		return nil
	}
	list := f.users[user]
	for i := range list {
		if list[i].source == source {
			return &list[i]
		}
	}
	return nil
}

// shareOf is the slot where the rows of a pool are counted. source is a hash, too.
func shareOf(user, source uint64) int {
	return int(((user ^ source) * 0x9e3779b97f4a7c15) >> (64 - slotBits)) // the upper bits of Fibonacci hashing
}

// count counts a row, and says whether the pool in the slot is to be trimmed.
func (f *floors) count(slot, most int) bool {
	f.counts[slot]++
	if f.counts[slot] < uint32(most+slack(most)) {
		return false
	}
	f.counts[slot] = 0
	return true
}

// slack is how much more than its cap a pool takes before it is trimmed, if what was put before is of different pins.
func slack(most int) int { return most/8 + 1 }

// keep remembers a level.
func (f *floors) keep(user schemas.UserID, l level) {
	if l.weight() > mostFloors/8 {
		return
	}
	if was := f.of(user, l.source); was != nil {
		f.held += l.weight() - was.weight()
		*was = l
	} else {
		user = schemas.UserID(strings.Clone(string(user)))
		f.held += l.weight()
		f.users[user] = append(f.users[user], l)
	}
	for other := range f.users {
		if f.held <= mostFloors {
			return
		}
		if other != user {
			f.drop(other)
		}
	}
}

// trimmed remembers what a trim found: how full the pool is, nil if it is not, and that its next turn is after so many rows.
func (f *floors) trimmed(user schemas.UserID, source schemas.Source, l *level, most int) {
	if was := f.of(user, source); was != nil {
		was.room = most
	}
	if l != nil {
		f.keep(user, *l)
	}
}

// postpone has a pool be trimmed with the next row that it gets.
func (f *floors) postpone(user schemas.UserID, source schemas.Source) {
	if was := f.of(user, source); was != nil {
		was.room = 0
		return
	}
	f.keep(user, level{source: source})
}

func (f *floors) drop(user schemas.UserID) {
	for _, l := range f.users[user] {
		f.held -= l.weight()
	}
	delete(f.users, user)
}

// forget forgets where a user's pools end.
func (f *floors) forget(user schemas.UserID) {
	list := f.users[user]
	for i := range list {
		f.raze(&list[i])
	}
}

// raze forgets where a pool ends.
func (f *floors) raze(l *level) {
	f.held -= l.weight()
	l.floor = nil
	f.held += l.weight()
}

// forgetting is a callback of records that may make room in their user's pools.
func forgetting[T any](callback func(tx *rows.Tx, rec *T) error) func(tx *rows.Tx, rec *T) error {
	return func(tx *rows.Tx, rec *T) error {
		floorsOf(tx).forget(schemas.UserID(tx.Key()))
		return callback(tx, rec)
	}
}

// refuses says whether a candidate's row would be trimmed at once. now is the record's time.
func (l *level) refuses(row []byte, c *candidate, now time.Time, expiry time.Duration) bool {
	f := l.floor
	return f != nil && string(row[1:]) > f.place && f.user.deleted.Len() == f.holds &&
		(expiry == 0 || f.oldest >= schemas.MicrosOf(now.Add(-expiry))) && f.user.standing(l.source, c) == waiting
}

// levelOf returns how full a pool is that has just been trimmed, nil if it is not full. deletions is how many users were
// deleted before.
func levelOf(v *view, source schemas.Source, list []candidateRow, t *trimmed, most, deletions int) *level {
	if len(t.waiting) < most {
		return nil
	}
	f := &floor{
		holds: deletions, follows: len(v.graph.follows) + len(v.graph.blocks) + len(v.graph.blockedBy),
		user: &view{
			user: schemas.UserID(strings.Clone(string(v.user))), graph: v.graph, deleted: v.deleted, oldest: v.oldest,
			state: state{Unseen: v.state.Unseen, Refused: v.state.Refused},
		},
	}
	for i, place := range t.waiting {
		if r := &list[place]; i == 0 || r.created < f.oldest {
			f.oldest = r.created
		}
	}
	f.place = strings.Clone(list[t.waiting[most-1]].place())
	return &level{source: source, room: most, floor: f}
}

// isFirst says whether a delivered version is the first of its pin: versions are stamped with the time of their event or
// later, and a pin's first event is its creation, see schemas.Version. A later one may take a pin out of the pool.
func isFirst(p *schemas.DeliveredPin) bool {
	return !p.Deleted && schemas.Micros(p.Version) == p.Created
}
