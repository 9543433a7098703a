package schemas

// FeedState is what a feed remembers of a user, and what it holds back, at one moment.
type FeedState struct {
	Feed       string        `json:"feed"`
	Arm        string        `json:"arm,omitempty"`        // of the feed that the user is in; "": none
	Sources    []SourceState `json:"sources,omitempty"`    // with a share, with candidates, or with impressions; by name
	Held       []HeldBack    `json:"held,omitempty"`       // the longest deferred first, then the least weak first
	Affinities []Affinity    `json:"affinities,omitempty"` // strongest first
	Degraded   []string      `json:"degraded,omitempty"`   // what could not be read
}

// SourceState is how a source stands with a user.
type SourceState struct {
	Source  Source  `json:"source"`
	Waiting int     `json:"waiting"` // candidates in the pool, within its cap
	Target  float64 `json:"target"`  // share of the impressions that the source is to have; of all sources together 1
	Shown   float64 `json:"shown"`   // impressions remembered, older ones counting less
}

// HeldBack is a candidate that a visit now would leave for a later session.
type HeldBack struct {
	Pin    PinID  `json:"pin"`
	Reason Reason `json:"reason"`          // ReasonDeferred or ReasonWeak
	Since  Micros `json:"since,omitempty"` // when it was deferred; 0: it was not
}

// FeedShare counts what a source gave to the chunks of a feed that were made in one process.
type FeedShare struct {
	Feed   string  `json:"feed"`
	Arm    string  `json:"arm,omitempty"` // of the feed; "": none
	Source Source  `json:"source"`        // "others": all that the feed does not name, each of which has the target
	Target float64 `json:"target"`        // relative to those of the other sources
	Items  int64   `json:"items"`         // since the process began
}
