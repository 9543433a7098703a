package schemas

// FeedEntry is one item of a user's materialized feed.
type FeedEntry struct {
	User     UserID `json:"user"`
	Position int64  `json:"position"` // dense from 1, never reused
	Time     Micros `json:"time"`     // when it was served
	ServedItem
}
