package schemas

// Delivery delivers versions of pins to the pools of users of one partition: every pin to every user. Topic deliveries,
// produced to the partition of the users explicitly; the key is the followee. A fan-out step has one pin and many users, a
// backfill many pins and one user.
type Delivery struct {
	Source  Source         `avro:"source" json:"source"`
	Pins    []DeliveredPin `avro:"pins" json:"pins"`
	Users   []UserID       `avro:"users" json:"users"`
	Weights []float32      `avro:"weights" json:"weights,omitempty"` // of Users, in their order; empty: all 1

	// Continuation is a record of the topic fanout-loop; empty: none. pools sends it, under the key of the delivery, after it
	// has applied the delivery. Therefore a long walk is only as fast as its deliveries are processed, and never queues ahead
	// of other followees' deliveries.
	Continuation []byte `avro:"continuation" json:"continuation,omitempty"`

	// BackfillID marks the last delivery of a followee's answer to the EdgeMode with the same BackfillID; 0: it is not the
	// last of one. Users then has only the user of that EdgeMode.
	BackfillID Micros `avro:"backfill_id" json:"backfill_id,omitempty"`
}

// DeliveredPin is a pin with its write-time score, without the receiver's edge weight.
type DeliveredPin struct {
	Pin     PinID   `avro:"pin" json:"pin"`
	Version Version `avro:"version" json:"version"`
	PinContent
	BaseScore BaseScore `avro:"score" json:"score"` // see package processors/score
}

// MaxEncodedBytes returns an upper bound of the bytes of the pin in an encoded record. The numbers and the length of its id
// take at most 32 bytes.
func (p *DeliveredPin) MaxEncodedBytes() int { return 32 + len(p.Pin) + p.maxEncodedBytes() }

// DeliveryPortions splits pins into portions that each fit a Delivery to one user: at most 250 pins and 256 KiB, and at
// least one pin.
func DeliveryPortions(pins []DeliveredPin) [][]DeliveredPin {
	const maxPins, maxBytes = 250, 256 << 10
	var all [][]DeliveredPin
	start, size := 0, 0
	for i := range pins {
		n := pins[i].MaxEncodedBytes()
		if i > start && (i-start == maxPins || size+n > maxBytes) {
			all, start, size = append(all, pins[start:i]), i, 0
		}
		size += n
	}
	if start < len(pins) {
		all = append(all, pins[start:])
	}
	return all
}
