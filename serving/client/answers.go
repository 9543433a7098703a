package client

import (
	"encoding/json"
	"time"
)

// Page is a page of a user's feed.
type Page struct {
	Items    []Item   `json:"items"`
	Next     *string  `json:"next"`     // cursor for Older; nil only at the end of the feed
	Degraded []string `json:"degraded"` // parts that were unavailable to the server
}

// Item is a pin in a feed.
type Item struct {
	Pin
	New    bool    `json:"new"`    // first shown by this answer
	Source string  `json:"source"` // of the pool that the item came from
	Score  float64 `json:"score"`  // when the item was first shown
}

// Pin is the current state of a pin.
type Pin struct {
	ID        string    `json:"pin"`
	Time      time.Time `json:"time"` // of creation
	Author    string    `json:"author"`
	Board     *string   `json:"board"` // nil: none
	Interests []string  `json:"interests"`
	Title     string    `json:"title"`
	Link      string    `json:"link"`
}

// ListPage is a page of publications.
type ListPage struct {
	Items    []Pin    `json:"items"`
	Next     *string  `json:"next"` // cursor for Published; nil: no more
	Degraded []string `json:"degraded"`
}

// Why is the state of a pin for a user, or how a visit now would handle it.
type Why struct {
	User       string         `json:"user"`
	Pin        string         `json:"pin"`
	Feed       string         `json:"feed"`
	Arm        string         `json:"arm,omitempty"` // the experiment arm of the feed that the user is in; "": none
	Fate       string         `json:"fate"`
	Reason     string         `json:"reason,omitempty"`
	By         []string       `json:"by"`              // the users or objects that are the reason
	Place      int            `json:"place,omitempty"` // from 1, in the chunk of a visit now; 0: the pin would not be in it
	Since      *time.Time     `json:"since,omitempty"` // when it was deferred
	Shown      *Shown         `json:"shown"`           // nil: it was not shown
	Candidates []WhyCandidate `json:"candidates"`
	Degraded   []string       `json:"degraded"`
}

// Shown describes how a pin was shown.
type Shown struct {
	Time     time.Time `json:"time"`
	Position int64     `json:"position"` // in the materialized feed; the item that was shown first has position 1
	Source   string    `json:"source,omitempty"`
	Score    *float64  `json:"score,omitempty"`
}

// WhyCandidate is a pin in the pool of one source.
type WhyCandidate struct {
	Source string             `json:"source"`
	Reason string             `json:"reason,omitempty"` // why it is not a visible candidate; "": it is one
	Rank   int                `json:"rank,omitempty"`   // among the visible candidates, from 1
	Edges  []string           `json:"edges"`            // live edges that justify it
	Score  float64            `json:"score"`
	Parts  map[string]float64 `json:"parts"` // the terms whose sum is the score
}

// Pool is the candidates of a user from one source: visible and unseen.
type Pool struct {
	Source string     `json:"source"`
	Total  int        `json:"total"` // number of candidates; Items are the best of them
	Items  []PoolItem `json:"items"` // best first
}

// PoolItem is a candidate in a pool.
type PoolItem struct {
	Pin       string    `json:"pin"`
	Score     float64   `json:"score"` // write-time score including the edge weight; comparable only within the source
	Time      time.Time `json:"time"`  // of the pin's creation
	Author    string    `json:"author"`
	Board     *string   `json:"board"` // nil: none
	Interests []string  `json:"interests"`
}

// RelatedPins are the pins related to a pin, strongest first.
type RelatedPins struct {
	Items    []RelatedPin `json:"items"`
	Degraded []string     `json:"degraded"`
}

// RelatedPin is a pin that is related to another pin.
type RelatedPin struct {
	Pin
	Score float64 `json:"score"` // its share of all co-occurrences of the other pin, 0 to 1
}

// RelatedInterests are the interests related to an interest, strongest first.
type RelatedInterests struct {
	Items    []RelatedInterest `json:"items"`
	Degraded []string          `json:"degraded"`
}

// RelatedInterest is an interest that is related to another interest.
type RelatedInterest struct {
	Interest string  `json:"interest"`
	Score    float64 `json:"score"` // as of a RelatedPin
}

// SourceEngagement is the engagement with an interest's pins from one source.
type SourceEngagement struct {
	Source string           `json:"source"`
	Counts map[string]int64 `json:"counts"` // by verb; impressions under "impression"
}

// Definition defines a feature, with the keys of features.yaml.
type Definition struct {
	Name        string              `json:"name"`
	Description string              `json:"description,omitempty"`
	Entity      string              `json:"entity"` // "user", "pin" or "pair"
	Verbs       []string            `json:"verbs,omitempty"`
	Window      string              `json:"window,omitempty"`   // such as "24h"
	Where       map[string][]string `json:"where,omitempty"`    // accepted values by path
	GroupBy     json.RawMessage     `json:"group_by,omitempty"` // a path, or a list of paths
	Aggregate   string              `json:"aggregate"`
	Of          string              `json:"of,omitempty"`
	N           int                 `json:"n,omitempty"`
	HalfLife    string              `json:"half_life,omitempty"`
	Lookup      bool                `json:"lookup,omitempty"`
	Numerator   string              `json:"numerator,omitempty"`
	Denominator string              `json:"denominator,omitempty"`
}

// FeaturesRequest asks for features of entities: each feature for all entities of its kind.
type FeaturesRequest struct {
	Features    []string    `json:"features,omitempty"`
	FeatureSets []string    `json:"feature_sets,omitempty"` // names of sets whose features are added
	Users       []string    `json:"users,omitempty"`
	Pins        []string    `json:"pins,omitempty"`
	Pairs       [][2]string `json:"pairs,omitempty"` // user, pin
	At          *time.Time  `json:"at,omitempty"`    // end of the windows; nil: now. It does not affect features of pins
}

// FeaturesAnswer has the values of every requested entity, by entity name and feature name. The name of a pair is
// "user:…|pin:…".
type FeaturesAnswer struct {
	// Values are JSON: a number; {"group":number}; [number]; [{"object","verb","timestamp"}]; [{"value","count"}]; or null
	// if Missing says why.
	Values   map[string]map[string]json.RawMessage `json:"values"`
	Missing  []Missing                             `json:"missing"`
	Degraded []string                              `json:"degraded"` // why values that exist are missing
	AsOf     time.Time                             `json:"as_of"`
	Fresh    *time.Time                            `json:"fresh"` // arrival of the newest action in the store; nil: unknown
}

// Missing says that a feature of an entity, or a part of it, is not in the answer.
type Missing struct {
	Entity  string `json:"entity"`
	Feature string `json:"feature"`
	Reason  string `json:"reason"`
}

// AttributesRequest asks for the current attributes of pins.
type AttributesRequest struct {
	Pins       []string `json:"pins"`
	Embeddings bool     `json:"embeddings,omitempty"` // whether to return embeddings
}

// AttributesAnswer has the attributes of the requested pins.
type AttributesAnswer struct {
	Pins     map[string]Attributes `json:"pins"`
	Missing  []MissingPin          `json:"missing"`
	Degraded []string              `json:"degraded"`
	Fresh    *time.Time            `json:"fresh"` // as in FeaturesAnswer
}

// Attributes is the data of a pin as of its newest version.
type Attributes struct {
	Author     string            `json:"author"`
	Board      string            `json:"board,omitempty"`
	Interests  []string          `json:"interests"`
	Attributes map[string]string `json:"attributes"`
	Embedding  []float32         `json:"embedding,omitempty"` // absent: none, or not requested
}

// MissingPin says why the answer does not have a pin.
type MissingPin struct {
	Entity string `json:"entity"`
	Reason string `json:"reason"`
}
