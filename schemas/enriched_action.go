package schemas

// EnrichedAction is the standard form of an action, joined with the attributes of its object and its actor. Topic
// actions-joined has records without actor attributes, topic actions-enriched has complete ones. Key: the actor.
type EnrichedAction struct {
	ID               string           `avro:"id" json:"id"`
	Timestamp        Micros           `avro:"timestamp" json:"timestamp"`
	Actor            UserID           `avro:"actor" json:"actor"`
	ActorAttributes  ActorAttributes  `avro:"actorAttributes" json:"actorAttributes"`
	Verb             Verb             `avro:"verb" json:"verb"`
	VerbAttributes   VerbAttributes   `avro:"verbAttributes" json:"verbAttributes"`
	Object           ID               `avro:"object" json:"object"`
	ObjectAttributes ObjectAttributes `avro:"objectAttributes" json:"objectAttributes"`
	// Number counts the actions of the actor, from 1, in the order of actions-enriched. It is 0 in actions-joined.
	Number int64 `avro:"number" json:"number,omitempty"`
}

// ActorAttributes are the newest known attributes of the user.
type ActorAttributes struct {
	Interests  []InterestID      `avro:"interests" json:"interests,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // empty: none
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
}

// VerbAttributes are the attributes of the action itself.
type VerbAttributes struct {
	Board      BoardID           `avro:"board" json:"board,omitempty"`
	Surface    string            `avro:"surface" json:"surface,omitempty"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
}

// ObjectAttributes are the attributes of the pin as of the action.
type ObjectAttributes struct {
	Facets
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // empty: none
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
	Version    Version           `avro:"version" json:"version,omitempty"` // newest version of the pin; 0: unknown, or not created yet
	Created    Micros            `avro:"created" json:"created,omitempty"`
	Quality    float64           `avro:"quality" json:"quality,omitempty"` // > 0, 1 by default
}
