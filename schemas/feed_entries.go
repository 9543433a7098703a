package schemas

import "iter"

// FeedEntries are the items that a visit added to a user's materialized feed. Topic feed-entries, key: User. Older versions
// wrote one record per entry, which reads as a record without More. Their readers find no position in current records and
// reject them.
type FeedEntries struct {
	User  UserID `avro:"user" json:"user"`
	First int64  `avro:"first" json:"first"` // position of the first entry; the others follow it
	Time  Micros `avro:"time" json:"time"`   // when they were served
	ServedItem
	More []ServedItem `avro:"more" json:"more,omitempty"`
}

// FeedEntriesOf returns the entries of items, starting at position first. There must be at least one item.
func FeedEntriesOf(user UserID, at Micros, first int64, items []ServedItem) *FeedEntries {
	return &FeedEntries{User: user, First: first, Time: at, ServedItem: items[0], More: items[1:]}
}

// Last returns the position of the last entry.
func (f *FeedEntries) Last() int64 { return f.First + int64(len(f.More)) }

// At returns the entry at a position from First to Last.
func (f *FeedEntries) At(position int64) FeedEntry {
	e := FeedEntry{User: f.User, Position: position, Time: f.Time, ServedItem: f.ServedItem}
	if n := position - f.First; n > 0 {
		e.ServedItem = f.More[n-1]
	}
	return e
}

// All returns an iterator over the entries, by position.
func (f *FeedEntries) All() iter.Seq[FeedEntry] {
	return func(yield func(FeedEntry) bool) {
		for p := f.First; p <= f.Last(); p++ {
			if !yield(f.At(p)) {
				return
			}
		}
	}
}
