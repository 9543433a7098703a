package schemas

import "iter"

// FeedEntries are the items that a visit added to a user's materialized feed: at least one. Topic feed-entries, key: User.
type FeedEntries struct {
	User  UserID       `avro:"user" json:"user"`
	First int64        `avro:"first" json:"first"` // position of the first item; the others follow it
	Time  Micros       `avro:"time" json:"time"`   // when they were served
	Items []ServedItem `avro:"items" json:"items"`
}

// FeedEntry is one item of a user's materialized feed.
type FeedEntry struct {
	User     UserID `json:"user"`
	Position int64  `json:"position"` // dense from 1, never reused
	Time     Micros `json:"time"`     // when it was served
	ServedItem
}

// Last returns the position of the last item.
func (f *FeedEntries) Last() int64 { return f.First + int64(len(f.Items)) - 1 }

// At returns the entry at a position from First to Last.
func (f *FeedEntries) At(position int64) FeedEntry {
	return FeedEntry{User: f.User, Position: position, Time: f.Time, ServedItem: f.Items[position-f.First]}
}

// All returns an iterator over the entries, by position.
func (f *FeedEntries) All() iter.Seq[FeedEntry] {
	return func(yield func(FeedEntry) bool) {
		for p := f.First; p <= f.Last() && yield(f.At(p)); p++ {
		}
	}
}
