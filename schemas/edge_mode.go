package schemas

// EdgeMode asks a followee to stop delivering to a follower who is away, or to start again and to bring what it has.
// Topic edge-modes, key: Followee.
type EdgeMode struct {
	Followee Followee `avro:"followee" json:"followee"`
	User     UserID   `avro:"user" json:"user"`
	Away     bool     `avro:"away" json:"away"`
	Asked    Micros   `avro:"asked" json:"asked"` // when the user came back: the last delivery of the answer carries it; or NotAwaited
}

// NotAwaited is the Asked of an EdgeMode for whose answer no chunk waits. No return was at that time.
const NotAwaited Micros = 1
