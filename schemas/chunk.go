package schemas

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrUnknownFeed is returned when no feed of that name is configured.
var ErrUnknownFeed = errors.New("unknown feed")

// ErrNotOwner is returned when this process does not own the partition of a user's pools, or is still recovering it.
var ErrNotOwner = errors.New("another process owns the partition")

// ChunkRequest requests a chunk from the content generator.
type ChunkRequest struct {
	Served string `json:"served"` // unique id of the Served record that the caller will publish; "" for a peek
	User   UserID `json:"user"`
	Feed   string `json:"feed"`  // name of a configured feed: "home", "plain" …
	Limit  int    `json:"limit"` // 1-100
	Time   Micros `json:"time"`  // now

	// Announced reports that a UserActivity of the user has been published, after a chunk with Inactive.
	Announced bool `json:"announced,omitempty"`
	// Attempts is the prefix of Served that all attempts of this visit share. If the Served of an earlier attempt has been
	// applied, the chunk is empty. "": the visit is not repeated.
	Attempts string `json:"attempts,omitempty"`
	// Peek requests the chunk that a visit would get now. It reserves nothing, and Served is empty.
	Peek bool `json:"peek,omitempty"`
}

// Chunk is the generator's answer. If Served.Items is empty, there is nothing to publish and nothing is reserved.
type Chunk struct {
	Served   Served      `json:"served"`
	Head     int64       `json:"head"`   // highest position of the materialized feed when the chunk was built; 0: none
	Recent   []FeedEntry `json:"recent"` // see RecentEntries
	Degraded []string    `json:"degraded,omitempty"`

	// ReadRecent reads Recent, which is empty then. If it is nil, Recent is complete.
	ReadRecent func(ctx context.Context) ([]FeedEntry, error) `json:"-"`

	// Inactive reports that the user was inactive, and that the chunk is empty: publish a UserActivity, then request the chunk again.
	Inactive bool `json:"inactive,omitempty"`
	// Announce reports that no recent visit of the user is recorded: publish a UserActivity if this chunk has no items.
	Announce bool `json:"announce,omitempty"`
}

// RecentEntries returns the newest entries of the materialized feed, newest first, for use until the store has them. An entry
// that has become hidden has no pin. If ReadRecent is set, the entries are read only now, because few responses need them and
// reading them is a significant part of the cost of a chunk. It returns the error of ReadRecent.
func (c *Chunk) RecentEntries(ctx context.Context) ([]FeedEntry, error) {
	if c.ReadRecent == nil {
		return c.Recent, nil
	}
	return c.ReadRecent(ctx)
}

// Outcome is the outcome of publishing the Served record of a chunk.
type Outcome string

// The outcomes that a caller can report. The generator resolves an Unknown one (a timeout) itself, after the producer's
// delivery timeout.
const (
	Acknowledged Outcome = "acknowledged"
	Failed       Outcome = "failed" // certainly not in the log
	Unknown      Outcome = "unknown"
)

// Pool is one user's visible, unseen candidates of one source, best first.
type Pool struct {
	Source Source         `json:"source"`
	Total  int            `json:"total"`
	Items  List[PoolItem] `json:"items"`
}

// PoolItem is a candidate in a Pool.
type PoolItem struct {
	Pin       PinID     `json:"pin"`
	PoolScore PoolScore `json:"score"` // write-time score, including the edge weight
	Time      Timestamp `json:"time"`  // creation time of the pin
	Facets
}

// MarshalJSON implements json.Marshaler. No board is null, and no interests are [].
func (p PoolItem) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Pin       PinID            `json:"pin"`
		Score     PoolScore        `json:"score"`
		Time      Timestamp        `json:"time"`
		Author    UserID           `json:"author"`
		Board     *BoardID         `json:"board"`
		Interests List[InterestID] `json:"interests"`
	}{p.Pin, p.PoolScore, p.Time, p.Author, boardWire(&p.Board), p.Interests})
}
