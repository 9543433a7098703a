package schemas

// UserEvent is a record of the topic users: update or delete of a user. Key: the user, who is actor and object.
type UserEvent struct {
	Event
	Interests  []InterestID      `avro:"interests" json:"interests,omitempty"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // null in Avro is nil here
}
