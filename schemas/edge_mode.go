package schemas

// EdgeMode requests that fanout stops delivering a followee's pins to an inactive follower, or resumes and delivers a backfill.
// Topic edge-modes, key: Followee.
type EdgeMode struct {
	Followee Followee `avro:"followee" json:"followee"`
	User     UserID   `avro:"user" json:"user"`
	Inactive bool     `avro:"inactive" json:"inactive"`
	// BackfillID is the time of the backfill request, which the last delivery of the answer carries; or NotAwaited.
	BackfillID Micros `avro:"backfill_id" json:"backfill_id"`
}

// NotAwaited is the BackfillID of an EdgeMode whose answer no chunk waits for. No backfill request has this time.
const NotAwaited Micros = 1
