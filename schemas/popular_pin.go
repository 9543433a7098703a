package schemas

// PopularPin is one slot of the most popular pins of a partition. Topic popular-pins, compacted; every process that reads pools
// holds it as a global table. Key: partition and slot. A tombstone means that the slot is free.
type PopularPin struct {
	Pin        PinID `avro:"pin" json:"pin"`
	Facets     `avro:"facets"`
	Created    Micros  `avro:"created" json:"created"`
	Engagement float64 `avro:"engagement" json:"engagement"` // sum of the weights of actions, decayed to Time; above 0
	Time       Micros  `avro:"time" json:"time"`
}
