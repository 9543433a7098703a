package schemas

import "strconv"

// PulledPin is one slot of a pulled followee: one of its best pins. Topic recents-pulled, compacted; every process that
// reads pools holds it as a global table. Key: PulledKey of followee and slot.
type PulledPin struct {
	Followee  Followee `avro:"followee" json:"followee"`
	Slot      int32    `avro:"slot" json:"slot"`
	Withdrawn bool     `avro:"withdrawn" json:"withdrawn"` // deleted, or no longer the followee's: not a candidate, but reported to readers
	DeliveredPin
}

// PulledKey returns the record key of a followee's slot.
func PulledKey(followee Followee, slot int32) string {
	return string(followee) + " " + strconv.Itoa(int(slot))
}
