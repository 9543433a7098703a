package pools

import (
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// Score thresholds. A user with many followees receives far more deliveries than a pool holds. Each candidate that cannot
// enter the pool would be put, written to the changelog, compacted and trimmed again. Therefore a trim of a full pool keeps, in
// memory only, the place of the last candidate: the threshold. A new, waiting pin below the threshold is dropped before it
// becomes a row, as the trim would drop it. This requires no read. It is only an optimization: a pool whose threshold is
// unknown, such as after a start, accepts every row.
//
// A threshold is valid while candidates are only added. These events discard it:
//
//   - a record of the user that can free a place;
//   - a version of a pin other than its first;
//   - the deletion of any user;
//   - the expiry of the oldest candidate of the pool.

// thresholds holds the known levels of a partition's pools.
type thresholds struct {
	users map[schemas.UserID][]level
	held  int // total weight of the levels

	// counts is the number of rows that were put into pools without a known level, by slot. Pools that share a slot are
	// trimmed earlier.
	counts [1 << slotBits]uint32
}

const slotBits = 14

// maxThresholdWeight bounds the levels of a partition, by weight: about 100 bytes per unit, 3 MiB in total. Beyond it, a new
// level replaces arbitrary others.
const maxThresholdWeight = 1 << 15

// level is the fill level of a pool that was full at its last trim, or whose trim was postponed.
type level struct {
	source schemas.Source
	// room is the number of rows that are put before the pool is trimmed. At 1 or less, the next row makes the pool due.
	room      int
	threshold *threshold // nil: no longer known
}

// threshold is the threshold of a full pool.
type threshold struct {
	place     string         // of the last waiting candidate
	deletions int            // number of deleted users for which the threshold is valid
	oldest    schemas.Micros // creation time of the oldest waiting candidate
	viewer    visibility.Viewer
	deleted   visibility.GrowingDeletedUsers
	follows   int // number of edges and blocks in viewer
}

func newThresholds() any { return &thresholds{users: map[schemas.UserID][]level{}} }

// thresholdsOf returns the thresholds of a record's partition.
func thresholdsOf(tx *rows.Tx) *thresholds {
	f, _ := tx.Memory().(*thresholds)
	return f
}

// weight returns the weight of a level within maxThresholdWeight.
func (l *level) weight() int {
	if l.threshold == nil {
		return 1
	}
	return 2 + l.threshold.follows
}

// of returns the level of a user's pool, or nil if it is unknown. It is valid until the next call of keep.
func (f *thresholds) of(user schemas.UserID, source schemas.Source) *level {
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

// slotOf returns the slot that counts the rows of a pool. Both arguments are hashes.
func slotOf(user, source uint64) int {
	return int(((user ^ source) * 0x9e3779b97f4a7c15) >> (64 - slotBits)) // the upper bits of Fibonacci hashing
}

// count counts a row and reports whether the pools of the slot must be trimmed.
func (f *thresholds) count(slot, limit int) bool {
	f.counts[slot]++
	if f.counts[slot] < uint32(limit+slack(limit)) {
		return false
	}
	f.counts[slot] = 0
	return true
}

// slack returns the number of rows over its cap that a pool accepts before it is trimmed, if all rows have different pins.
func slack(limit int) int { return limit/8 + 1 }

// keep stores a level.
func (f *thresholds) keep(user schemas.UserID, l level) {
	if l.weight() > maxThresholdWeight/8 {
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
		if f.held <= maxThresholdWeight {
			return
		}
		if other != user {
			f.drop(other)
		}
	}
}

// trimmed records the result of a trim. l is the level of the pool, or nil if the pool is not full. A known level is due
// again after most rows.
func (f *thresholds) trimmed(user schemas.UserID, source schemas.Source, l *level, limit int) {
	if was := f.of(user, source); was != nil {
		was.room = limit
	}
	if l != nil {
		f.keep(user, *l)
	}
}

// postpone makes a pool due with its next row.
func (f *thresholds) postpone(user schemas.UserID, source schemas.Source) {
	if was := f.of(user, source); was != nil {
		was.room = 0
		return
	}
	f.keep(user, level{source: source})
}

func (f *thresholds) drop(user schemas.UserID) {
	for _, l := range f.users[user] {
		f.held -= l.weight()
	}
	delete(f.users, user)
}

// discard discards the thresholds of a user's pools.
func (f *thresholds) discard(user schemas.UserID) {
	list := f.users[user]
	for i := range list {
		f.invalidate(&list[i])
	}
}

// invalidate discards the threshold of a pool.
func (f *thresholds) invalidate(l *level) {
	f.held -= l.weight()
	l.threshold = nil
	f.held += l.weight()
}

// invalidating wraps a callback whose records can free places in their user's pools: it discards the user's thresholds first.
func invalidating[T any](callback func(tx *rows.Tx, rec *T) error) func(tx *rows.Tx, rec *T) error {
	return func(tx *rows.Tx, rec *T) error {
		thresholdsOf(tx).discard(schemas.UserID(tx.Key()))
		return callback(tx, rec)
	}
}

// refuses reports whether the next trim would drop a candidate's row. now is the time of the record.
func (l *level) refuses(row []byte, c *layout.Candidate, now time.Time, expiry time.Duration) bool {
	f := l.threshold
	return f != nil && string(row[1:]) > f.place && f.deleted.Len() == f.deletions &&
		(expiry == 0 || f.oldest >= schemas.MicrosOf(now.Add(-expiry))) && f.viewer.Hides(&c.Content.Pin, visibility.CandidateEdges(l.source)) == ""
}

// levelOf returns the level of a pool that was just trimmed, or nil if the pool is not full. deletions is the number of
// deleted users when the trim started.
func levelOf(v *layout.View, source schemas.Source, list []layout.CandidateRow, t *trimmed, limit, deletions int) *level {
	if len(t.waiting) < limit {
		return nil
	}
	f := &threshold{
		deletions: deletions, deleted: v.Deleted, viewer: v.Viewer,
		follows: len(v.Viewer.Follows) + len(v.Viewer.Blocks) + len(v.Viewer.BlockedBy),
	}
	f.viewer.User = schemas.UserID(strings.Clone(string(v.Viewer.User)))
	for i, place := range t.waiting {
		if r := &list[place]; i == 0 || r.Created < f.oldest {
			f.oldest = r.Created
		}
	}
	f.place = strings.Clone(list[t.waiting[limit-1]].Place())
	return &level{source: source, room: limit, threshold: f}
}

// isFirst reports whether a delivered version is the first of its pin. A version is the time of its event or later, and the
// first event of a pin is its creation; see schemas.Version. A later version may remove the pin from the pool.
func isFirst(p *schemas.DeliveredPin) bool {
	return !p.Deleted && schemas.Micros(p.Version) == p.Created
}
