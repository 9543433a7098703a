package schemas

// EdgeMode asks a followee to stop delivering to an inactive follower, or to resume and deliver a backfill. Topic
// edge-modes, key: Followee.
type EdgeMode struct {
	Followee Followee `avro:"followee" json:"followee"`
	User     UserID   `avro:"user" json:"user"`
	Away     bool     `avro:"away" json:"away"`
	// Asked is the time of the backfill request, which the last delivery of the answer carries; or NotAwaited.
	Asked Micros `avro:"asked" json:"asked"`
}

// NotAwaited is the Asked of an EdgeMode whose answer no chunk waits for. No backfill request has this time.
const NotAwaited Micros = 1
