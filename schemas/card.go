package schemas

// Card is a pin's current state for API responses. Topic pin-cards, key: the pin.
type Card struct {
	PinVersion
	Title string `avro:"title" json:"title"`
	Link  string `avro:"link" json:"link"`
}
