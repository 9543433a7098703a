package schemas

// PinEvent is a record of the topic pins: create, update or delete of a pin. Key: the pin.
type PinEvent struct {
	Event
	Board      BoardID           `avro:"board" json:"board,omitempty"`         // null in Avro is "" here
	Interests  []InterestID      `avro:"interests" json:"interests,omitempty"` // each once, after Decode or ParseLine
	Title      string            `avro:"title" json:"title,omitempty"`
	Link       string            `avro:"link" json:"link,omitempty"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // null in Avro is nil here
}

// Facets returns the facets of a pin that its author creates or updates with this event.
func (e *PinEvent) Facets() Facets {
	return Facets{Author: e.Actor, Board: e.Board, Interests: e.Interests}
}

// Validate checks every field against its bounds; arrival is the record's timestamp. It returns nil, or one *BadRecordError
// that lists all problems.
func (e *PinEvent) Validate(arrival Micros) error {
	var p problems
	e.check(&p, arrival, KindPin)
	e.checkActor(&p)
	e.checkVerb(&p, Create, Update, Delete)
	p.facets(e.Board, e.Interests)
	p.text("title", e.Title, MaxTitleBytes)
	if e.Link != "" {
		p.note("link", checkText(e.Link, MaxLinkBytes))
	}
	p.attributes(e.Attributes)
	p.embedding(e.Embedding)
	return p.err()
}
