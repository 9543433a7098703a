package schemas

// Delivery brings versions of pins into pools of users of one partition: every pin to every user. Topic deliveries,
// produced to the users' partition explicitly; the key is the followee. Fan-out fills one pin and many users, a
// back-fill many pins and one user.
type Delivery struct {
	Source  Source         `avro:"source" json:"source"`
	Pins    []DeliveredPin `avro:"pins" json:"pins"`
	Users   []UserID       `avro:"users" json:"users"`
	Weights []float32      `avro:"weights" json:"weights,omitempty"` // of Users, in their order; empty: all 1

	// Then is a record of the topic fanout-loop that is to be sent on under ThenKey once this delivery is applied; empty:
	// none. So a long walk goes no faster than its deliveries are worked off, and never queues before those of others.
	Then    []byte `avro:"then" json:"then,omitempty"`
	ThenKey string `avro:"then_key" json:"then_key,omitempty"`

	// Asked ends a followee's answer to an EdgeMode, whose Asked it is; 0: it ends none. Users is then the one who asked.
	Asked Micros `avro:"asked" json:"asked,omitempty"`
}

// DeliveredPin is a pin with its write-time score before the receiver's edge weight.
type DeliveredPin struct {
	Pin     PinID   `avro:"pin" json:"pin"`
	Version Version `avro:"version" json:"version"`
	Facets
	Created Micros  `avro:"created" json:"created"`
	Score   float64 `avro:"score" json:"score"` // see package processors/score
	Deleted bool    `avro:"deleted" json:"deleted"`
}

// MaxEncodedBytes returns an upper bound of the bytes of the pin in an encoded record: those of its strings, two for the length
// of each, and 48 for the rest.
func (p *DeliveredPin) MaxEncodedBytes() int {
	n := len(p.Pin) + len(p.Author) + len(p.Board) + 48
	for _, id := range p.Interests {
		n += len(id) + 2
	}
	return n
}

// DeliveryPortions cuts pins into runs that each fit in a Delivery to one user: at most 250 pins and 256 KiB, at least one pin.
func DeliveryPortions(pins []DeliveredPin) [][]DeliveredPin {
	const mostPins, mostBytes = 250, 256 << 10
	var all [][]DeliveredPin
	start, size := 0, 0
	for i := range pins {
		n := pins[i].MaxEncodedBytes()
		if i > start && (i-start == mostPins || size+n > mostBytes) {
			all, start, size = append(all, pins[start:i]), i, 0
		}
		size += n
	}
	if start < len(pins) {
		all = append(all, pins[start:])
	}
	return all
}
