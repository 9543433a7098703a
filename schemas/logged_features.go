package schemas

// LoggedFeatures are the features of one entity as an answer had them, for training. Topic feature-log, key: Entity.
type LoggedFeatures struct {
	Answer string         `avro:"answer" json:"answer"`       // the same for all entities of one answer
	Entity string         `avro:"entity" json:"entity"`       // a user, a pin, or "user:…|pin:…"
	User   UserID         `avro:"user" json:"user,omitempty"` // of a user and of a pair
	Pin    PinID          `avro:"pin" json:"pin,omitempty"`   // of a pin and of a pair
	AsOf   Micros         `avro:"asOf" json:"asOf"`           // where the windows ended
	Logged Micros         `avro:"logged" json:"logged"`       // when the answer was made, and 96 hours after what was kept
	Fresh  Micros         `avro:"fresh" json:"fresh"`         // when the newest action arrived that the store had; 0: not known
	Share  float64        `avro:"share" json:"share"`         // of such entities that are logged, above 0 to 1: a weight is its reciprocal
	Values []FeatureValue `avro:"values" json:"values"`
}

// FeatureValue is one feature's value: at most one of the fields after Reasons.
type FeatureValue struct {
	Feature string             `avro:"feature" json:"feature"`
	Reasons []string           `avro:"reasons" json:"reasons,omitempty"` // why it or a part of it was missing
	Number  *float64           `avro:"number" json:"number,omitempty"`
	Groups  map[string]float64 `avro:"groups" json:"groups,omitempty"`
	Vector  []float64          `avro:"vector" json:"vector,omitempty"`
	Last    []LoggedAction     `avro:"last" json:"last,omitempty"`
	Top     []LoggedCount      `avro:"top" json:"top,omitempty"`
}

// LoggedAction is one of a list of newest actions.
type LoggedAction struct {
	Object ID     `avro:"object" json:"object"`
	Verb   Verb   `avro:"verb" json:"verb"`
	Time   Micros `avro:"time" json:"time"` // floored to milliseconds
}

// LoggedCount is one of a list of most frequent values.
type LoggedCount struct {
	Value string `avro:"value" json:"value"`
	Count int64  `avro:"count" json:"count"`
}
