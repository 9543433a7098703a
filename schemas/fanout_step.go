package schemas

// FanoutStep is the rest of a walk over a followee's edges. Topic fanout-loop, key: the followee.
type FanoutStep struct {
	Publication
	After UserID `avro:"after" json:"after"` // the last follower already served
}
