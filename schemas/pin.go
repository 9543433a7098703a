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
	Language   string            `avro:"language" json:"language,omitempty"`   // see Facets
}

// Facets returns the facets of a pin that its author creates or updates with this event.
func (e *PinEvent) Facets() Facets {
	return Facets{Author: e.Actor, Board: e.Board, Interests: e.Interests, Language: e.Language}
}

func (e *PinEvent) visit(v fieldVisitor) {
	e.Event.visit(v, textBounds{kinds: KindUser}, textBounds{values: "create|update|delete"}, KindPin)
	v.text("board", (*string)(&e.Board), textBounds{rule: nullable, kinds: KindBoard})
	visitInterests(v, &e.Interests)
	v.text("title", &e.Title, textBounds{rule: optional, maxBytes: MaxTitleBytes, multiline: true})
	v.text("link", &e.Link, textBounds{rule: optional, maxBytes: MaxLinkBytes})
	v.attributes("attributes", &e.Attributes)
	v.embedding("embedding", &e.Embedding)
	visitLanguage(v, &e.Language)
}
