package schemas

// Continuation is work of fanout that a later record continues. Topic fanout-loop, key: Followee. Exactly one of the other
// fields is set.
type Continuation struct {
	Followee Followee  `avro:"followee" json:"followee"`
	Walk     *Walk     `avro:"walk" json:"walk,omitempty"`
	Backfill *Backfill `avro:"backfill" json:"backfill,omitempty"`
	Slots    *SlotStep `avro:"slots" json:"slots,omitempty"`
}

// Walk is the next step of the delivery of a pin to the followers. It travels with a delivery of the previous step: pools
// sends it after it has applied that delivery.
type Walk struct {
	Pin      DeliveredPin `avro:"pin" json:"pin"`
	After    UserID       `avro:"after" json:"after"`       // the follower that was served last; "": none
	Inactive bool         `avro:"inactive" json:"inactive"` // After is an inactive follower
	All      bool         `avro:"all" json:"all"`           // includes inactive followers
	// Number is the number of the step among those of the followee. fanout drops a step with another number than it expects,
	// because the walk has continued without it.
	Number int64 `avro:"number" json:"number"`
}

// Backfill delivers further recents to one follower.
type Backfill struct {
	User       UserID  `avro:"user" json:"user"`
	Weight     float32 `avro:"weight" json:"weight"`           // of the edge
	BackfillID Micros  `avro:"backfill_id" json:"backfill_id"` // see Delivery
	// The recent that was delivered last. Live recents precede withdrawn ones, the best score first.
	Withdrawn bool      `avro:"withdrawn" json:"withdrawn"`
	BaseScore BaseScore `avro:"score" json:"score"`
	Pin       PinID     `avro:"pin" json:"pin"`
}

// SlotStep fills or frees the slots of further recents. See package processors/fanout.
type SlotStep struct {
	Free  bool  `avro:"free" json:"free"`   // false: the slots are filled
	After PinID `avro:"after" json:"after"` // the pin that was processed last; "": none
}
