package schemas

// Impressions report to objects and interests which pins of one partition a visit showed. Topic impressions, produced to
// that partition explicitly, without a key.
type Impressions struct {
	User UserID     `avro:"user" json:"user"`
	Time Micros     `avro:"time" json:"time"`
	Pins []ShownPin `avro:"pins" json:"pins"`
}

// ShownPin is a pin and its source.
type ShownPin struct {
	Pin    PinID  `avro:"pin" json:"pin"`
	Source Source `avro:"source" json:"source"`
}
