package schemas

// Source is where a candidate came from. A pool is one user's candidates of one source.
type Source string

// The sources of the pipeline itself. Any other name on the topic candidates is a source of its own.
const (
	Following    Source = "following" // a followed user or board published it
	FromInterest Source = "interest"  // a followed interest published it
	Related      Source = "related"   // neighbour of a pin the user acted on
	Explore      Source = "explore"   // only in answers: picked by the exploration rule
)

// Facets are the ids by which a pin reaches people, and by which it is hidden from them.
type Facets struct {
	Author    UserID       `avro:"author" json:"author,omitempty"`
	Board     BoardID      `avro:"board" json:"board,omitempty"` // "" for none
	Interests []InterestID `avro:"interests" json:"interests,omitempty"`
}

// Version is a state of a pin, as objects numbers them: strictly increasing for a pin, equal to the event time in
// microseconds unless two accepted events share it. The highest version of a pin wins wherever two meet.
type Version int64

// PinVersion is what everybody downstream of objects needs to know of one version of a pin.
type PinVersion struct {
	Pin     PinID   `avro:"pin" json:"pin"`
	Version Version `avro:"version" json:"version"`
	Facets
	Created Micros  `avro:"created" json:"created"` // of the earliest create, not of this version
	Quality float64 `avro:"quality" json:"quality"` // > 0, 1 by default
	Deleted bool    `avro:"deleted" json:"deleted"` // of the pin, for good
}

// Publication brings a version of a pin to one followee, the record's key: a current or a former author, board or
// interest of the pin. A followee that is not among the facets any more is told so by this.
type Publication struct {
	Followee Followee `avro:"followee" json:"followee"`
	PinVersion
}

// Card is a pin's present state for answers. Topic pin-cards, key: the pin.
type Card struct {
	PinVersion
	Title string `avro:"title" json:"title"`
	Link  string `avro:"link" json:"link"`
}

// Delivery brings versions of pins into pools of users of one partition: every pin to every user. Topic deliveries,
// produced to the users' partition explicitly; the key is the followee. Fan-out fills one pin and many users, a
// back-fill many pins and one user.
type Delivery struct {
	Source  Source         `avro:"source" json:"source"`
	Pins    []DeliveredPin `avro:"pins" json:"pins"`
	Users   []UserID       `avro:"users" json:"users"`
	Weights []float32      `avro:"weights" json:"weights,omitempty"` // of Users, in their order; empty: all 1
}

// DeliveredPin is a pin with its write-time score before the receiver's edge weight.
type DeliveredPin struct {
	Pin     PinID   `avro:"pin" json:"pin"`
	Version Version `avro:"version" json:"version"`
	Facets
	Created Micros  `avro:"created" json:"created"`
	Score   float64 `avro:"score" json:"score"` // see package processors/score
	Deleted bool    `avro:"deleted" json:"deleted"`
}

// EdgeKind is which register of a pair an Edge reports.
type EdgeKind string

// The registers.
const (
	FollowEdge  EdgeKind = "follow"  // User follows Other
	BlockEdge   EdgeKind = "block"   // User blocks Other
	BlockedEdge EdgeKind = "blocked" // Other blocks User
)

// Edge is the present state of one register of User towards Other. Topic edges, key: User. In the log of one
// (user, other, kind) later records are newer states.
type Edge struct {
	User  UserID   `avro:"user" json:"user"`
	Other ID       `avro:"other" json:"other"` // a followee; for BlockedEdge the user who blocks
	Kind  EdgeKind `avro:"kind" json:"kind"`
	Live  bool     `avro:"live" json:"live"`
	Time  Micros   `avro:"time" json:"time"` // event time of the change
}

// EdgeWeight tells fanout how much User cares for Followee. Topic edge-weights, key: Followee.
type EdgeWeight struct {
	Followee Followee `avro:"followee" json:"followee"`
	User     UserID   `avro:"user" json:"user"`
	Weight   float32  `avro:"weight" json:"weight"` // > 0, 1 at first, moves in a few steps
	Time     Micros   `avro:"time" json:"time"`
}

// Affinities are the facets a user cares most for, strongest first. Topic affinities, key: User.
type Affinities struct {
	User UserID     `avro:"user" json:"user"`
	Time Micros     `avro:"time" json:"time"`
	Top  []Affinity `avro:"top" json:"top"`
}

// Affinity is the decayed, weighted sum of a user's actions on pins with one facet, as of Affinities.Time.
type Affinity struct {
	Facet ID      `avro:"facet" json:"facet"` // author, board or interest
	Value float64 `avro:"value" json:"value"`
}

// EnrichedAction is the standard action schema: an action joined with the attributes of its object and its actor.
// Topic actions-joined carries it without actor attributes, topic actions-enriched complete. Key: the actor.
type EnrichedAction struct {
	ID               string           `avro:"id" json:"id"`
	Timestamp        Micros           `avro:"timestamp" json:"timestamp"`
	Actor            UserID           `avro:"actor" json:"actor"`
	ActorAttributes  ActorAttributes  `avro:"actorAttributes" json:"actorAttributes"`
	Verb             Verb             `avro:"verb" json:"verb"`
	VerbAttributes   VerbAttributes   `avro:"verbAttributes" json:"verbAttributes"`
	Object           ID               `avro:"object" json:"object"`
	ObjectAttributes ObjectAttributes `avro:"objectAttributes" json:"objectAttributes"`
}

// ActorAttributes are the user's, newest known.
type ActorAttributes struct {
	Interests  []InterestID      `avro:"interests" json:"interests,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // empty: none
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
}

// VerbAttributes are the action's own.
type VerbAttributes struct {
	Board      BoardID           `avro:"board" json:"board,omitempty"`
	Surface    string            `avro:"surface" json:"surface,omitempty"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
}

// ObjectAttributes are the pin's, as of the action.
type ObjectAttributes struct {
	Facets
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // empty: none
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
}

// ItemCounts are what all members did to one pin in one step of time. Topic item-features, key: Pin. A later record
// of the same pin and step replaces the earlier.
type ItemCounts struct {
	Pin    PinID            `avro:"pin" json:"pin"`
	Start  Micros           `avro:"start" json:"start"`   // a multiple of ItemStep; the step is [Start, Start+ItemStep)
	Counts map[string]int64 `avro:"counts" json:"counts"` // by verb, impressions under "impression"
}

// ItemStep is the resolution of item features.
const ItemStep Micros = 5 * 60 * 1e6

// Served says what a visit showed: the new items in their order, and all else the generator must remember. Topic
// served, key: User. Published and acknowledged before the answer leaves; the ID makes a repeat harmless.
type Served struct {
	ID    string             `avro:"id" json:"id"`
	User  UserID             `avro:"user" json:"user"`
	Time  Micros             `avro:"time" json:"time"`
	Feed  string             `avro:"feed" json:"feed"`
	Items []ServedItem       `avro:"items" json:"items"`
	Mix   map[string]float64 `avro:"mix" json:"mix,omitempty"` // impressions by source with their decay, after this visit
}

// ServedItem is one new item of a visit.
type ServedItem struct {
	Pin    PinID  `avro:"pin" json:"pin"`
	Source Source `avro:"source" json:"source"`
	Facets
	Score   float64 `avro:"score" json:"score"`     // the generator's
	Created Micros  `avro:"created" json:"created"` // of the pin
}

// FeedEntry is one item of a user's frozen feed. Topic feed-entries, key: User.
type FeedEntry struct {
	User     UserID `avro:"user" json:"user"`
	Position int64  `avro:"position" json:"position"` // dense from 1, never reused
	Time     Micros `avro:"time" json:"time"`         // when it was served
	ServedItem
}

// Impression tells objects that a pin was shown. Topic impressions, key: Pin.
type Impression struct {
	Pin    PinID  `avro:"pin" json:"pin"`
	User   UserID `avro:"user" json:"user"`
	Source Source `avro:"source" json:"source"`
	Time   Micros `avro:"time" json:"time"`
}

// DeletedUser is a user who is gone for good. Topic users-deleted, compacted, key: User, held whole by everybody.
type DeletedUser struct {
	User UserID `avro:"user" json:"user"`
	Time Micros `avro:"time" json:"time"`
}

// DeadLetter is a record that could not be worked off, with its bytes and the reason. Topic dead-letters, key: the
// topic it came from.
type DeadLetter struct {
	Topic     string `avro:"topic" json:"topic"`
	Partition int32  `avro:"partition" json:"partition"`
	Offset    int64  `avro:"offset" json:"offset"`
	Group     string `avro:"group" json:"group"` // who could not work it off
	Reason    string `avro:"reason" json:"reason"`
	Time      Micros `avro:"time" json:"time"` // arrival of the record
	Key       []byte `avro:"key" json:"key"`
	Value     []byte `avro:"value" json:"value"`
}

// FanoutStep is the rest of a walk over a followee's edges. Topic fanout-loop, key: the followee.
type FanoutStep struct {
	Publication
	After UserID `avro:"after" json:"after"` // the last follower already served
}

// Tick wakes a group's partition, which has a timer that is due. Topics <group>-ticks, to a partition.
type Tick struct {
	Time Micros `avro:"time" json:"time"`
}
