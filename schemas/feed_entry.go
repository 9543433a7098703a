package schemas

// FeedEntry is one item of a user's frozen feed. Topic feed-entries, key: User.
type FeedEntry struct {
	User     UserID `avro:"user" json:"user"`
	Position int64  `avro:"position" json:"position"` // dense from 1, never reused
	Time     Micros `avro:"time" json:"time"`         // when it was served
	ServedItem
}
