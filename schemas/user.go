package schemas

// UserEvent is a record of the topic users: update or delete of a user. Key: the user, who is actor and object.
type UserEvent struct {
	Event
	Interests  []InterestID      `avro:"interests" json:"interests,omitempty"` // each once, after Decode or ParseLine
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // null in Avro is nil here
}

// Validate checks every field against its bounds, and that actor and object are the same user; arrival is the record's
// timestamp. It returns nil, or one *BadRecordError that lists all problems.
func (e *UserEvent) Validate(arrival Micros) error {
	var p problems
	e.check(&p, arrival, KindUser)
	if string(e.Actor) != string(e.Object) {
		p.notef("actor", "%s is not the object %s", quote(string(e.Actor)), quote(string(e.Object)))
	}
	e.checkVerb(&p, Update, Delete)
	p.facets("", e.Interests)
	p.attributes(e.Attributes)
	p.embedding(e.Embedding)
	return p.err()
}
