package schemas

// Delivery brings versions of pins into pools of users of one partition: every pin to every user. Topic deliveries,
// produced to the users' partition explicitly; the key is the followee. Fan-out fills one pin and many users, a
// back-fill many pins and one user.
type Delivery struct {
	Source  Source         `avro:"source" json:"source"`
	Pins    []DeliveredPin `avro:"pins" json:"pins"`
	Users   []UserID       `avro:"users" json:"users"`
	Weights []float32      `avro:"weights" json:"weights,omitempty"` // of Users, in their order; empty: all 1
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
