package schemas

import "iter"

// FeedEntries are what a visit added to a user's frozen feed. Topic feed-entries, key: User. Former builds wrote a record
// for each entry, which is one without More; their readers find no position in what is written now, and refuse it.
type FeedEntries struct {
	User  UserID `avro:"user" json:"user"`
	First int64  `avro:"first" json:"first"` // position of the first; the others follow one another
	Time  Micros `avro:"time" json:"time"`   // when they were served
	ServedItem
	More []ServedItem `avro:"more" json:"more,omitempty"`
}

// FeedEntriesOf returns the entries of items, at least one, the first of which has position first.
func FeedEntriesOf(user UserID, at Micros, first int64, items []ServedItem) *FeedEntries {
	return &FeedEntries{User: user, First: first, Time: at, ServedItem: items[0], More: items[1:]}
}

// Last returns the position of the last entry.
func (f *FeedEntries) Last() int64 { return f.First + int64(len(f.More)) }

// At returns the entry of a position, from First to Last.
func (f *FeedEntries) At(position int64) FeedEntry {
	e := FeedEntry{User: f.User, Position: position, Time: f.Time, ServedItem: f.ServedItem}
	if n := position - f.First; n > 0 {
		e.ServedItem = f.More[n-1]
	}
	return e
}

// All are the entries, by position.
func (f *FeedEntries) All() iter.Seq[FeedEntry] {
	return func(yield func(FeedEntry) bool) {
		for p := f.First; p <= f.Last(); p++ {
			if !yield(f.At(p)) {
				return
			}
		}
	}
}
