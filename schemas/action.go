package schemas

// ActionEvent is a record of the topic actions: view, click, save … of a pin. Key: the pin.
type ActionEvent struct {
	Event
	Board      BoardID           `avro:"board" json:"board,omitempty"` // where a save went; null in Avro is "" here
	Surface    string            `avro:"surface" json:"surface,omitempty"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"` // the verb's: device, referrer, dwell …
}
