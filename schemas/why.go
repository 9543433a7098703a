package schemas

// WhyRequest asks what has become of a pin for a user, or would at a visit now.
type WhyRequest struct {
	User  UserID `json:"user"`
	Pin   PinID  `json:"pin"`
	Feed  string `json:"feed"`  // a configured feed
	Limit int    `json:"limit"` // of the visit that is thought of, 1-100
	Time  Micros `json:"time"`  // now
	Card  *Card  `json:"card"`  // what is known of the pin; nil: nothing

	// Masked says that the answer is for the user, who must not learn who blocks them: a pin that only such a block hides is
	// answered as one that no delivery has brought.
	Masked bool `json:"masked,omitempty"`
}

// Why is the answer to a WhyRequest.
type Why struct {
	Fate   Fate   `json:"fate"`
	Reason Reason `json:"reason,omitempty"`
	By     []ID   `json:"by,omitempty"`    // who or what is the reason: authors, boards, interests
	Arm    string `json:"arm,omitempty"`   // of the feed that the user is in; "": none
	Place  int    `json:"place,omitempty"` // in the chunk of a visit now, from 1, of what is next
	Since  Micros `json:"since,omitempty"` // when it was deferred; 0: it was not

	Seen       *WhySeen       `json:"seen,omitempty"`       // nil: it was not shown
	Candidates []WhyCandidate `json:"candidates,omitempty"` // by source
	Degraded   []string       `json:"degraded,omitempty"`
}

// WhySeen says how a pin was shown.
type WhySeen struct {
	Position int64       `json:"position"` // in the frozen feed
	Time     Micros      `json:"time"`
	Item     *ServedItem `json:"item,omitempty"` // nil: it was so long ago that the frozen feed has to be asked
}

// WhyCandidate is a pin in the pool of one source.
type WhyCandidate struct {
	Source Source             `json:"source"`
	Reason Reason             `json:"reason,omitempty"` // why it does not wait there; "": it does
	Rank   int                `json:"rank,omitempty"`   // among those that wait, from 1, by write-time score
	Edges  []ID               `json:"edges,omitempty"`  // live ones that bring it
	Score  float64            `json:"score"`            // that would be answered
	Parts  map[string]float64 `json:"parts"`            // whose sum the score is
}

// Fate is what becomes of a pin.
type Fate string

// The fates.
const (
	FateShown    Fate = "shown"     // it was shown
	FateUnderWay Fate = "under_way" // a visit is about to show it
	FateNext     Fate = "next"      // a visit now would show it
	FateWaiting  Fate = "waiting"   // a later one may
	FateHeld     Fate = "held"      // a rule keeps it for a later session
	FateHidden   Fate = "hidden"    // it may not be seen
	FateOut      Fate = "out"       // it is no candidate any more, or never was
)

// Reason says why, in a word.
type Reason string

// The reasons, by the fate that they explain. What is shown, under way or next needs none; a pin that was shown and may
// not be seen any more has that of what is hidden.
const (
	ReasonBehind     Reason = "behind"       // waiting: others are better, or their source is due
	ReasonBeyondHead Reason = "beyond_head"  // waiting: not among the best of its pool that a chunk is made of
	ReasonCapAuthor  Reason = "cap_author"   // waiting: too many of its author stand before it
	ReasonCapBoard   Reason = "cap_board"    // waiting: of its board
	ReasonCapTopic   Reason = "cap_interest" // waiting: of an interest
	ReasonNoShare    Reason = "no_share"     // waiting: its sources have no share in this feed
	ReasonOwnRule    Reason = "own_rule"     // waiting: a rule of the program around does not admit it now
	ReasonWeak       Reason = "weak"         // held: too far below the best, and the session's budget is spent
	ReasonDeferred   Reason = "deferred"     // held: for that it was deferred
	ReasonDeleted    Reason = "deleted"      // hidden: the pin
	ReasonAuthorGone Reason = "author_gone"  // hidden: its author is deleted
	ReasonOwn        Reason = "own"          // hidden: nobody is shown their own
	ReasonBlock      Reason = "block"        // hidden: by the user, of author, board or interest; or by the author
	ReasonNoEdge     Reason = "no_edge"      // hidden: the user follows nothing that would bring it
	ReasonFollowCap  Reason = "followee_cap" // hidden: what the user follows would bring it, but stands over pools.max_followees
	ReasonForgotten  Reason = "forgotten"    // out: as old as what is no longer remembered as seen
	ReasonExpired    Reason = "expired"      // out: older than candidates may be
	ReasonGivenUp    Reason = "given_up"     // out: deferred for too long
	ReasonCap        Reason = "cap"          // out: the pool is full of better ones
	ReasonNever      Reason = "undelivered"  // out: no delivery has brought it, or what it brought was dropped
	ReasonUnknown    Reason = "unknown"      // out: there is no such pin
	ReasonUserGone   Reason = "user_gone"    // out: the user is deleted
	ReasonSeen       Reason = "seen"         // of a candidate that still stands in a pool after it was shown
)
