// Code generated from clients/openapi.json by TestEvent_HasFieldsOfDocument. DO NOT EDIT.

package client

import (
	"encoding/json"
	"time"
)

// Page is a page of a user's feed.
type Page struct {
	// The unavailable parts: generator (no new items), served (new items could not be recorded in time, so none are shown), reactivating (the user was inactive, and the backfill is incomplete), items, pulled, popular, embeddings, affinities, model, source:NAME (not used to select new items), store, stale (items down to a gap). Empty if nothing was.
	Degraded []string `json:"degraded"`
	Items    []Item   `json:"items"`
	// The cursor of the next page; null only at the end.
	Next *string `json:"next"`
}

// Item is a pin in a feed.
type Item struct {
	Pin
	// First shown by this answer.
	New bool `json:"new"`
	// The score by the generator when the pin was first shown.
	Score float64 `json:"score"`
	// The source of the item: following, interest, explore, related, or an external source.
	Source string `json:"source"`
}

// Pin is the current state of a pin.
type Pin struct {
	// When the pin was created.
	Time      time.Time `json:"time"`
	Author    string    `json:"author"`
	Board     *string   `json:"board"`
	Interests []string  `json:"interests"`
	// Empty while the pin's card is unknown.
	Link string `json:"link"`
	ID   string `json:"pin"`
	// Empty while the pin's card is unknown.
	Title string `json:"title"`
}

// ListPage is a page of publications.
type ListPage struct {
	// The unavailable parts: generator (no new items), served (new items could not be recorded in time, so none are shown), reactivating (the user was inactive, and the backfill is incomplete), items, pulled, popular, embeddings, affinities, model, source:NAME (not used to select new items), store, stale (items down to a gap). Empty if nothing was.
	Degraded []string `json:"degraded"`
	Items    []Pin    `json:"items"`
	// The cursor of the next page; null only at the end.
	Next *string `json:"next"`
}

// Why is the state of a pin for a user, or how a visit now would handle it.
type Why struct {
	User string `json:"user"`
	// The experiment arm of the feed that the user is in. Absent: none.
	Arm string `json:"arm,omitempty"`
	// The users or objects that are the reason: authors, boards, interests. For similar, the pin that it is similar to.
	By []string `json:"by"`
	// By source.
	Candidates []WhyCandidate `json:"candidates"`
	// The unavailable parts.
	Degraded []string `json:"degraded"`
	// shown: it was. pending: a visit is about to show it. next: a visit of 25 now would show it. waiting: a later one may. deferred: a rule keeps it for a later session. hidden: it may not be seen. out: it is no candidate any more, or never was.
	Fate string `json:"fate"`
	Feed string `json:"feed"`
	Pin  string `json:"pin"`
	// Position in the chunk of a visit now, for the fate next.
	Place int `json:"place,omitempty"`
	// waiting: outranked, beyond_head, cap_author, cap_board, cap_interest, similar, no_share, own_rule. deferred: weak, deferred_earlier. hidden, and shown when it may not be seen any more: deleted, author_deleted, own, block, no_edge, followee_cap. out: seen_trimmed, expired, deferral_expired, cap, undelivered, unknown, user_deleted. Absent: none is needed.
	Reason string `json:"reason,omitempty"`
	// null: the pin was not shown.
	Shown *Shown `json:"shown"`
	// When the pin was deferred. Absent: it was not.
	Since *time.Time `json:"since,omitempty"`
}

// Shown describes how a pin was shown.
type Shown struct {
	Time time.Time `json:"time"`
	// Position in the materialized feed. The item that was shown first has position 1.
	Position int      `json:"position"`
	Score    *float64 `json:"score,omitempty"`
	// Absent if the materialized feed no longer has the pin.
	Source string `json:"source,omitempty"`
}

// WhyCandidate is a pin in the pool of one source.
type WhyCandidate struct {
	// The live edges that justify it.
	Edges []string `json:"edges"`
	// The terms whose sum is the score: created, quality and edge (or quality_and_edge, or offered), and the terms of the feed's rules, such as affinity.
	Parts map[string]float64 `json:"parts"`
	// Rank among the visible candidates, by write-time score.
	Rank int `json:"rank,omitempty"`
	// Why the pin is not a visible candidate of this source, for example seen. Absent: it is one.
	Reason string `json:"reason,omitempty"`
	// Score that the feed gives the pin in this source: the sum of parts.
	Score  float64 `json:"score"`
	Source string  `json:"source"`
}

// Pool is the candidates of a user from one source: visible and unseen.
type Pool struct {
	// Best first.
	Items  []PoolItem `json:"items"`
	Source string     `json:"source"`
	// Number of candidates.
	Total int `json:"total"`
}

// PoolItem is a candidate in a pool.
type PoolItem struct {
	// When the pin was created.
	Time      time.Time `json:"time"`
	Author    string    `json:"author"`
	Board     *string   `json:"board"`
	Interests []string  `json:"interests"`
	Pin       string    `json:"pin"`
	// Write-time score with the edge weight; compared within its source only.
	Score float64 `json:"score"`
}

// RelatedPins are the pins related to a pin, strongest first.
type RelatedPins struct {
	// The unavailable parts: related (no neighbors), store (the answer may contain deleted pins). Empty if nothing was.
	Degraded []string     `json:"degraded"`
	Items    []RelatedPin `json:"items"`
}

// RelatedPin is a pin that is related to another pin.
type RelatedPin struct {
	Pin
	// Its share of all co-occurrences of the requested pin or interest, with more weight on recent ones.
	Score float64 `json:"score"`
}

// RelatedInterests are the interests related to an interest, strongest first.
type RelatedInterests struct {
	// The unavailable parts: related (no neighbors), store (the answer may contain deleted pins). Empty if nothing was.
	Degraded []string          `json:"degraded"`
	Items    []RelatedInterest `json:"items"`
}

// RelatedInterest is an interest that is related to another interest.
type RelatedInterest struct {
	Interest string `json:"interest"`
	// Its share of all co-occurrences of the requested pin or interest, with more weight on recent ones.
	Score float64 `json:"score"`
}

// SourceEngagement is the engagement with an interest's pins from one source.
type SourceEngagement struct {
	// By verb; impressions under "impression".
	Counts map[string]int `json:"counts"`
	Source string         `json:"source"`
}

// Definition defines a feature, with the keys of features.yaml.
type Definition struct {
	Aggregate string `json:"aggregate"`
	// For sequence: the paths of the columns, next to the time.
	Columns []string `json:"columns,omitempty"`
	// For ratio: another feature.
	Denominator string `json:"denominator,omitempty"`
	Description string `json:"description,omitempty"`
	// For sequence: the type of the embeddings in columns.
	Embedding string `json:"embedding,omitempty"`
	Entity    string `json:"entity"`
	// A path, or a list of paths.
	GroupBy json.RawMessage `json:"group_by,omitempty"`
	// The time after which an action counts half. Absent: all actions count equally.
	HalfLife string `json:"half_life,omitempty"`
	// Number of values of last, top and sequence, or of groups.
	N    int    `json:"n,omitempty"`
	Name string `json:"name"`
	// For ratio: another feature.
	Numerator string `json:"numerator,omitempty"`
	// The path of the values that sum, mean, top and so on aggregate.
	Of string `json:"of,omitempty"`
	// Absent: all.
	Verbs []string `json:"verbs,omitempty"`
	// Path to the values of which an action must have one.
	Where map[string][]string `json:"where,omitempty"`
	// A duration, at most 96h.
	Window string `json:"window,omitempty"`
}

// FeaturesRequest asks for features of entities: each feature for all entities of its kind.
type FeaturesRequest struct {
	// End of the windows. Default: now. It has no effect on features of pins.
	At *time.Time `json:"at,omitempty"`
	// Names of feature sets, whose features are added.
	FeatureSets []string `json:"feature_sets,omitempty"`
	// Names of definitions. Together with those of the sets, 1 to 100.
	Features []string    `json:"features,omitempty"`
	Pairs    [][2]string `json:"pairs,omitempty"`
	Pins     []string    `json:"pins,omitempty"`
	Users    []string    `json:"users,omitempty"`
}

// FeaturesAnswer has the values of every requested entity, by entity name and feature name.
type FeaturesAnswer struct {
	// End of the windows.
	AsOf     time.Time `json:"as_of"`
	Degraded []string  `json:"degraded"`
	// Arrival time of the newest action in the store. null: unknown, for example if none has arrived since the start. With Pinot, it is that of the least fresh partition that was read; null if Pinot does not report one of them.
	Fresh   *time.Time `json:"fresh"`
	Missing []Missing  `json:"missing"`
	// By entity (a pair is named user:…|pin:…), then by feature.
	Values map[string]map[string]json.RawMessage `json:"values"`
}

// Missing says that a feature of an entity, or a part of it, is not in the answer.
type Missing struct {
	Entity  string `json:"entity"`
	Feature string `json:"feature"`
	// empty: no actions; window, cap: the value covers a part; overflow: the value exceeds a float64; pin, attribute: the pin of a pair, or its attribute, is unknown; deleted: the user is deleted; deadline, store: not evaluated; size: the answer would exceed 64 MiB.
	Reason string `json:"reason"`
}

// AttributesRequest asks for the current attributes of pins.
type AttributesRequest struct {
	// Whether to return the embeddings of the pins.
	Embeddings bool     `json:"embeddings,omitempty"`
	Pins       []string `json:"pins"`
}

// AttributesAnswer has the attributes of the requested pins.
type AttributesAnswer struct {
	Degraded []string `json:"degraded"`
	// As in FeaturesAnswer. With Pinot, it is that of the least fresh partition of the requested pins; null if there are none.
	Fresh   *time.Time            `json:"fresh"`
	Missing []MissingPin          `json:"missing"`
	Pins    map[string]Attributes `json:"pins"`
}

// Attributes is the data of a pin as of its newest version.
type Attributes struct {
	Attributes map[string]string `json:"attributes"`
	Author     string            `json:"author"`
	Board      string            `json:"board,omitempty"`
	Embedding  []float32         `json:"embedding,omitempty"`
	Interests  []string          `json:"interests"`
}

// MissingPin says why the answer does not have a pin.
type MissingPin struct {
	Entity string `json:"entity"`
	// pin: it is unknown or deleted; deadline, store: it could not be read.
	Reason string `json:"reason"`
}
