package schemas

// PinActor sends a pin the embedding of a user who acted on it. Topic pin-actors, key: Pin.
type PinActor struct {
	Pin       PinID     `avro:"pin" json:"pin"`
	Time      Micros    `avro:"time" json:"time"` // of the action
	Embedding []float32 `avro:"embedding" json:"embedding"`
}
