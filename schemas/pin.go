package schemas

// PinEvent is a record of the topic pins: create, update or delete of a pin. Key: the pin.
type PinEvent struct {
	Event
	Board      BoardID           `avro:"board" json:"board,omitempty"` // null in Avro is "" here
	Interests  []InterestID      `avro:"interests" json:"interests,omitempty"`
	Title      string            `avro:"title" json:"title,omitempty"`
	Link       string            `avro:"link" json:"link,omitempty"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // null in Avro is nil here
}
