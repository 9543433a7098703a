package schemas

import (
	"context"
	"errors"
)

// ErrUnknownFeed says that no feed of that name is configured.
var ErrUnknownFeed = errors.New("unknown feed")

// ErrElsewhere says that a user's pools are not in this process at the moment: their partition is another's, or is still
// being recovered.
var ErrElsewhere = errors.New("partition elsewhere")

// ChunkRequest asks the content generator for what a visit shows.
type ChunkRequest struct {
	Served string `json:"served"` // the id of the Served record the caller will publish; unique
	User   UserID `json:"user"`
	Feed   string `json:"feed"`  // name of a configured feed: "home", "plain" …
	Limit  int    `json:"limit"` // 1-100
	Time   Micros `json:"time"`  // now

	// Returned says that the user's return has been announced, after a chunk that was Away.
	Returned bool `json:"returned,omitempty"`
}

// Chunk is the generator's answer. Served.Items may be empty; then there is nothing to publish and nothing reserved.
type Chunk struct {
	Served   Served      `json:"served"`
	Head     int64       `json:"head"`   // highest frozen position when the chunk was built; 0: none
	Floor    int64       `json:"floor"`  // positions at or below it were trimmed
	Recent   []FeedEntry `json:"recent"` // see Remembered
	Degraded []string    `json:"degraded,omitempty"`

	// Recall reads Recent, which is empty then; nil: Recent is all there is.
	Recall func(ctx context.Context) ([]FeedEntry, error) `json:"-"`

	// Away says that the user was away, and that there is nothing in the chunk yet: publish a Return, then ask again.
	Away bool `json:"away,omitempty"`
	// Announce says that no visit of the user is on record for some time: publish a Return, if this chunk has no items.
	Announce bool `json:"announce,omitempty"`
}

// Remembered returns the newest frozen entries, newest first, for what the store has not yet; an entry that the user may no
// longer be shown has no pin. They are read only now where
// that is still possible, because few answers need them, and to read them would be a good part of what a chunk costs. It
// fails with what it reads from.
func (c *Chunk) Remembered(ctx context.Context) ([]FeedEntry, error) {
	if c.Recall == nil {
		return c.Recent, nil
	}
	return c.Recall(ctx)
}

// Outcome is what became of the Served record of a chunk.
type Outcome string

// The outcomes a caller can know. An Unknown one (a time-out) is settled by the generator itself, after the
// producer's delivery time-out.
const (
	Acknowledged Outcome = "acknowledged"
	Failed       Outcome = "failed" // certain not to be in the log
	Unknown      Outcome = "unknown"
)

// Pool is one user's candidates of one source as a reader sees them: visible, unseen, best first.
type Pool struct {
	Source Source     `json:"source"`
	Total  int        `json:"total"`
	Items  []PoolItem `json:"items"`
}

// PoolItem is a candidate in a Pool.
type PoolItem struct {
	Pin   PinID   `json:"pin"`
	Score float64 `json:"score"` // write-time, with the edge weight
	Time  Micros  `json:"time"`  // the pin's creation
	Facets
}
