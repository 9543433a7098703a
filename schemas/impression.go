package schemas

// Impression tells objects that a pin was shown. Topic impressions, key: Pin.
type Impression struct {
	Pin    PinID  `avro:"pin" json:"pin"`
	User   UserID `avro:"user" json:"user"`
	Source Source `avro:"source" json:"source"`
	Time   Micros `avro:"time" json:"time"`
}
