package schemas

// UserEvent is a record of the topic users: update or delete of a user. Key: the user, who is actor and object.
type UserEvent struct {
	Event
	Interests  []InterestID      `avro:"interests" json:"interests,omitempty"` // each once, after Decode or ParseLine
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // null in Avro is nil here
}

func (e *UserEvent) removeRepeats() { e.Interests = distinct(e.Interests) }

func (e *UserEvent) visit(v fieldVisitor) {
	actor := textBounds{kinds: KindUser, equals: string(e.Object)}
	e.Event.visit(v, actor, textBounds{values: "update|delete"}, KindUser)
	visitInterests(v, &e.Interests)
	v.attributes("attributes", &e.Attributes)
	v.embedding("embedding", &e.Embedding)
}
