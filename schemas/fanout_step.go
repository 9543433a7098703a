package schemas

// StepKind is the kind of a FanoutStep.
type StepKind string

// The kinds of steps.
const (
	WalkStep  StepKind = "walk"  // deliver a version of a pin to the next followers
	EdgesStep StepKind = "edges" // change edges of a shard
	MoveStep  StepKind = "move"  // move the next edges of a followee to its shards
	DoneStep  StepKind = "done"  // a walk of a switch to push has ended
	GiveStep  StepKind = "give"  // deliver the next recents to one follower
	FillStep  StepKind = "fill"  // write the next recents into slots
	BringStep StepKind = "bring" // queue walks for the next recents, for a switch to push
	FreeStep  StepKind = "free"  // empty the next slots permanently
	TrimStep  StepKind = "trim"  // drop recents over the cap
)

// EdgeChange is the change of the edges that an EdgesStep names.
type EdgeChange string

// The changes.
const (
	EdgeLive   EdgeChange = "live"   // the user follows
	EdgeDead   EdgeChange = "dead"   // the user no longer follows
	EdgeAway   EdgeChange = "away"   // the user follows and is inactive: no deliveries
	EdgeBack   EdgeChange = "back"   // the user was reactivated
	EdgeWeighs EdgeChange = "weighs" // the weight changed
)

// FanoutStep is work that fanout defers to a later record. Topic fanout-loop, key: the owner of the edges, which is the
// followee or one of its shards.
type FanoutStep struct {
	Kind     StepKind `avro:"kind" json:"kind"`
	Followee Followee `avro:"followee" json:"followee"`

	// For a walk, the pin. For a step over recents, the pin and score of the last one processed, and Deleted if that one
	// was withdrawn.
	DeliveredPin

	// For a walk.
	After UserID `avro:"after" json:"after"` // the last follower served
	Away  bool   `avro:"away" json:"away"`   // After is an inactive follower
	All   bool   `avro:"all" json:"all"`     // includes inactive followers
	Back  bool   `avro:"back" json:"back"`   // the walk belongs to a switch to push: it runs after others, and ends with a DoneStep
	Turn  bool   `avro:"turn" json:"turn"`   // the walk is running; other walks wait for it

	// Number is the number of the step among those of its owner, 0 if it has none. The owner drops a step with another
	// number than it expects, because the walk has continued without it.
	Number int64 `avro:"number" json:"number,omitempty"`

	// For an EdgesStep; Users and Weights also for a GiveStep.
	Change  EdgeChange `avro:"change" json:"change,omitempty"`
	Users   []UserID   `avro:"users" json:"users,omitempty"`
	Weights []float32  `avro:"weights" json:"weights,omitempty"` // of Users, in their order; empty: all 1

	Asked Micros `avro:"asked" json:"asked,omitempty"` // for a GiveStep; see Delivery
}
