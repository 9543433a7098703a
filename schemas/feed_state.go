package schemas

// FeedState is the state of a feed for a user at one time, with the candidates that it defers.
type FeedState struct {
	Feed       string                  `json:"feed"`
	Arm        string                  `json:"arm,omitempty"` // experiment arm of the feed that the user is in; "": none
	Sources    List[SourceState]       `json:"sources"`       // those with a share, candidates or impressions; by name
	Deferred   List[DeferredCandidate] `json:"deferred"`      // longest deferred first, then the highest score first
	Affinities List[Affinity]          `json:"affinities"`    // strongest first
	Degraded   List[string]            `json:"degraded"`      // parts that could not be read
}

// SourceState is the state of a source for a user.
type SourceState struct {
	Source  Source  `json:"source"`
	Waiting int     `json:"waiting"` // candidates in the pool, within its cap
	Target  float64 `json:"target"`  // target share of the impressions; the sum over all sources is 1
	Shown   float64 `json:"shown"`   // decayed impressions
}

// DeferredCandidate is a candidate that a visit now would defer, or an earlier visit deferred, to a later session.
type DeferredCandidate struct {
	Pin    PinID     `json:"pin"`
	Reason Reason    `json:"reason"`          // ReasonDeferredEarlier or ReasonWeak
	Since  Timestamp `json:"since,omitempty"` // when it was deferred; 0: it is not deferred yet
}

// FeedShare counts the items of a source in the chunks of a feed that one process built.
type FeedShare struct {
	Feed   string  `json:"feed"`
	Arm    string  `json:"arm,omitempty"` // experiment arm of the feed; "": none
	Source Source  `json:"source"`        // "others": all sources that the feed does not name, each of which has the target
	Target float64 `json:"target"`        // relative to the targets of the other sources
	Items  int64   `json:"items"`         // since the process started
}
