package schemas

// StepKind is what a FanoutStep asks for.
type StepKind string

// The kinds of steps.
const (
	WalkStep  StepKind = "walk"  // bring a version of a pin to the next followers
	EdgesStep StepKind = "edges" // change edges of a shard
	MoveStep  StepKind = "move"  // move the next edges of a followee to its shards
	DoneStep  StepKind = "done"  // a walk that brings back what was pulled has come to its end
	GiveStep  StepKind = "give"  // bring the next recents to one follower
	FillStep  StepKind = "fill"  // put the next recents into slots
	BringStep StepKind = "bring" // begin the walks that bring the next recents back
	FreeStep  StepKind = "free"  // empty the next slots, for good
	TrimStep  StepKind = "trim"  // drop recents over the cap
)

// EdgeChange is what becomes of the edges that an EdgesStep names.
type EdgeChange string

// The changes.
const (
	EdgeLive   EdgeChange = "live"   // the user follows
	EdgeDead   EdgeChange = "dead"   // no longer
	EdgeAway   EdgeChange = "away"   // the user follows, and is not delivered to before coming back
	EdgeBack   EdgeChange = "back"   // the user has come back
	EdgeWeighs EdgeChange = "weighs" // the user cares more or less
)

// FanoutStep is what fan-out leaves to be done later. Topic fanout-loop, key: the owner of the edges, which is the
// followee or one of its shards.
type FanoutStep struct {
	Kind     StepKind `avro:"kind" json:"kind"`
	Followee Followee `avro:"followee" json:"followee"`

	// Of a walk the pin; of a step over recents, the pin and score of the last one done, Deleted if it was one that is
	// gone.
	DeliveredPin

	// Of a walk.
	After UserID `avro:"after" json:"after"` // the last follower served
	Away  bool   `avro:"away" json:"away"`   // After is among those who are away
	All   bool   `avro:"all" json:"all"`     // also to those who are away
	Back  bool   `avro:"back" json:"back"`   // brings back what was pulled: gives way to others, and ends with a DoneStep
	Turn  bool   `avro:"turn" json:"turn"`   // the walk has the turn; another one waits for it

	// Number is that of the step among those of its owner, 0 if it has none. The owner drops a step with another number than
	// it expects: the walk has continued without it.
	Number int64 `avro:"number" json:"number,omitempty"`

	// Of an EdgesStep; Users and Weights also of a GiveStep.
	Change  EdgeChange `avro:"change" json:"change,omitempty"`
	Users   []UserID   `avro:"users" json:"users,omitempty"`
	Weights []float32  `avro:"weights" json:"weights,omitempty"` // of Users, in their order; empty: all 1

	Asked Micros `avro:"asked" json:"asked,omitempty"` // of a GiveStep, see Delivery
}
