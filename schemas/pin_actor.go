package schemas

// PinActor tells a pin what kind of people act on it: the embedding of one who did. Topic pin-actors, key: Pin.
type PinActor struct {
	Pin       PinID     `avro:"pin" json:"pin"`
	Time      Micros    `avro:"time" json:"time"` // of the action
	Embedding []float32 `avro:"embedding" json:"embedding"`
}
