package schemas

// WhyRequest requests the state of a pin for a user: how it was shown, or whether a visit now would show it.
type WhyRequest struct {
	User  UserID `json:"user"`
	Pin   PinID  `json:"pin"`
	Feed  string `json:"feed"`  // a configured feed
	Limit int    `json:"limit"` // of the assumed visit, 1-100
	Time  Micros `json:"time"`  // now
	Card  *Card  `json:"card"`  // the pin's card; nil: unknown

	// Masked requests an answer that does not reveal which users block the user. A pin that only such a block hides is
	// reported as undelivered.
	Masked bool `json:"masked,omitempty"`
}

// Why is the answer to a WhyRequest.
type Why struct {
	User UserID `json:"user"`
	Pin  PinID  `json:"pin"`
	Feed string `json:"feed"`
	Arm  string `json:"arm,omitempty"` // experiment arm of the feed that the user is in; "": none

	Fate   Fate      `json:"fate"`
	Reason Reason    `json:"reason,omitempty"`
	By     List[ID]  `json:"by"`              // causes of the reason: authors, boards, interests; for ReasonSimilar, a pin
	Place  int       `json:"place,omitempty"` // position in the chunk of a visit now, from 1; for FateNext
	Since  Timestamp `json:"since,omitempty"` // when it was deferred; 0: it is not

	Shown      *Shown             `json:"shown"` // nil: never shown
	Candidates List[WhyCandidate] `json:"candidates"`
	Degraded   List[string]       `json:"degraded"` // parts that were unavailable
}

// Shown describes how a pin was shown.
type Shown struct {
	Time      Timestamp  `json:"time"`
	Position  int64      `json:"position"`         // in the materialized feed; the item that was shown first has position 1
	Source    Source     `json:"source,omitempty"` // like Score, "" if the materialized feed no longer holds the item
	RankScore *RankScore `json:"score,omitempty"`
}

// WhyCandidate is a pin in the pool of one source.
type WhyCandidate struct {
	Source    Source             `json:"source"`
	Reason    Reason             `json:"reason,omitempty"` // why it is not a visible candidate; "": it is one
	Rank      int                `json:"rank,omitempty"`   // rank among the visible candidates, from 1, by write-time score
	Edges     List[ID]           `json:"edges"`            // live edges that justify the candidate
	RankScore RankScore          `json:"score"`            // score that the response would have
	Parts     map[string]float64 `json:"parts"`            // the terms whose sum is the score
}

// Fate is the state of a pin for a user.
type Fate string

// The fates.
const (
	FateShown    Fate = "shown"    // the pin was shown
	FatePending  Fate = "pending"  // a visit in progress will show it
	FateNext     Fate = "next"     // a visit now would show it
	FateWaiting  Fate = "waiting"  // a later visit may show it
	FateDeferred Fate = "deferred" // a rule defers it to a later session
	FateHidden   Fate = "hidden"   // the user must not see it
	FateOut      Fate = "out"      // it is not a candidate, or no longer one
)

// Reason is the reason for a Fate.
type Reason string

// The reasons, by the fate that they explain. FateShown, FatePending and FateNext need none. A pin that was shown and is
// hidden now has the reason of FateHidden.
const (
	ReasonOutranked       Reason = "outranked"        // waiting: other candidates are better, or their source is due
	ReasonBeyondHead      Reason = "beyond_head"      // waiting: not among the best of its pool, from which a chunk is built
	ReasonCapAuthor       Reason = "cap_author"       // waiting: cap of its author
	ReasonCapBoard        Reason = "cap_board"        // waiting: cap of its board
	ReasonCapInterest     Reason = "cap_interest"     // waiting: cap of an interest
	ReasonSimilar         Reason = "similar"          // waiting: similar to an item of the chunk, see By
	ReasonNoShare         Reason = "no_share"         // waiting: its sources have no share in this feed
	ReasonOwnRule         Reason = "own_rule"         // waiting: a rule of the embedding program excludes it now
	ReasonWeak            Reason = "weak"             // deferred: below the score threshold, and the session's budget is spent
	ReasonDeferredEarlier Reason = "deferred_earlier" // deferred: an earlier visit of this session deferred it for being weak
	ReasonDeleted         Reason = "deleted"          // hidden: the pin is deleted
	ReasonAuthorDeleted   Reason = "author_deleted"   // hidden: its author is deleted
	ReasonOwn             Reason = "own"              // hidden: the pin is the user's own
	ReasonBlock           Reason = "block"            // hidden: the user blocks the author, board or interest, or the author blocks the user
	ReasonNoEdge          Reason = "no_edge"          // hidden: no live edge justifies it
	ReasonFolloweeCap     Reason = "followee_cap"     // hidden: the edge that would justify it is over the cap of follows
	ReasonSeenTrimmed     Reason = "seen_trimmed"     // out: older than the oldest remaining seen row
	ReasonExpired         Reason = "expired"          // out: older than the maximum age of candidates
	ReasonDeferralExpired Reason = "deferral_expired" // out: deferred for too long
	ReasonCap             Reason = "cap"              // out: over the cap of the pool
	ReasonUndelivered     Reason = "undelivered"      // out: never delivered, or the delivery was dropped
	ReasonUnknown         Reason = "unknown"          // out: the pin does not exist
	ReasonUserDeleted     Reason = "user_deleted"     // out: the user is deleted
	ReasonSeen            Reason = "seen"             // of a candidate that is still in a pool after it was shown
)
