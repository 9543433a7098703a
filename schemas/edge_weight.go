package schemas

// EdgeWeight tells fanout how much User cares for Followee. Topic edge-weights, key: Followee.
type EdgeWeight struct {
	Followee Followee `avro:"followee" json:"followee"`
	User     UserID   `avro:"user" json:"user"`
	Weight   float32  `avro:"weight" json:"weight"` // > 0, 1 at first, moves in a few steps
	Time     Micros   `avro:"time" json:"time"`
}
