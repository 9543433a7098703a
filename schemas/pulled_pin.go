package schemas

import "strconv"

// PulledPin is what stands in one slot of a followee whose pins are pulled: one of its best. Topic recents-pulled,
// compacted, held whole by every process that reads pools; key: PulledKey of followee and slot.
type PulledPin struct {
	Followee Followee `avro:"followee" json:"followee"`
	Slot     int32    `avro:"slot" json:"slot"`
	Gone     bool     `avro:"gone" json:"gone"` // deleted, or no longer the followee's: no candidate, but what is true of the pin
	DeliveredPin
}

// PulledKey returns the record key of a followee's slot.
func PulledKey(followee Followee, slot int32) string {
	return string(followee) + " " + strconv.Itoa(int(slot))
}
