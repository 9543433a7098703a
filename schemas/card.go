package schemas

// Card is a pin's present state for answers. Topic pin-cards, key: the pin.
type Card struct {
	PinVersion
	Title string `avro:"title" json:"title"`
	Link  string `avro:"link" json:"link"`
}
