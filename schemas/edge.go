package schemas

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
	// Weight is of a live FollowEdge how much User cares for Other; 0 says nothing, which is 1.
	Weight float32 `avro:"weight" json:"weight,omitempty"`
	// Erased says that one of the two is a deleted user: the register is dead and nothing is kept of it.
	Erased bool `avro:"erased" json:"erased,omitempty"`
}
