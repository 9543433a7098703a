package schemas

// EdgeKind is the register that an Edge reports.
type EdgeKind string

// The registers.
const (
	FollowEdge  EdgeKind = "follow"  // User follows Other
	BlockEdge   EdgeKind = "block"   // User blocks Other
	BlockedEdge EdgeKind = "blocked" // Other blocks User
)

// Edge is the current state of one register of User toward Other. Topic edges, key: User. For one (user, other, kind),
// later records are newer states.
type Edge struct {
	User  UserID   `avro:"user" json:"user"`
	Other ID       `avro:"other" json:"other"` // a followee; for BlockedEdge, the user who blocks
	Kind  EdgeKind `avro:"kind" json:"kind"`
	Live  bool     `avro:"live" json:"live"`
	Time  Micros   `avro:"time" json:"time"` // event time of the change
	// Weight is the edge weight of a live FollowEdge; 0 means the default, 1.
	Weight float32 `avro:"weight" json:"weight,omitempty"`
	// Erased reports that one of the two is a deleted user: the register is dead and its state is not kept.
	Erased bool `avro:"erased" json:"erased,omitempty"`
}
