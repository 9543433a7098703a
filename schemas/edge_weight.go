package schemas

// EdgeWeight sends fanout the weight of User's edge to Followee. Topic edge-weights, key: Followee.
type EdgeWeight struct {
	Followee Followee `avro:"followee" json:"followee"`
	User     UserID   `avro:"user" json:"user"`
	Weight   float32  `avro:"weight" json:"weight"` // > 0, initially 1, changes in a few steps
	Time     Micros   `avro:"time" json:"time"`
}
