package schemas

// LoggedFeatures are the features of one entity in one response, for training. Topic feature-log, key: Entity.
type LoggedFeatures struct {
	Answer string `avro:"answer" json:"answer"`       // the same for all entities of one response
	Entity string `avro:"entity" json:"entity"`       // a user, a pin, or "user:…|pin:…"
	User   UserID `avro:"user" json:"user,omitempty"` // of a user and of a pair
	Pin    PinID  `avro:"pin" json:"pin,omitempty"`   // of a pin and of a pair
	AsOf   Micros `avro:"asOf" json:"asOf"`           // end of the windows
	// Logged is the time of the response. The store keeps the 96 hours before it.
	Logged Micros         `avro:"logged" json:"logged"`
	Fresh  Micros         `avro:"fresh" json:"fresh"` // arrival of the newest action in the store; 0: unknown
	Share  float64        `avro:"share" json:"share"` // share of such entities that are logged, above 0 to 1: a weight is its reciprocal
	Values []FeatureValue `avro:"values" json:"values"`
}

// FeatureValue is the value of one feature: at most one of the fields after Reasons is set.
type FeatureValue struct {
	Feature string             `avro:"feature" json:"feature"`
	Reasons []string           `avro:"reasons" json:"reasons,omitempty"` // why the value or a part of it is missing
	Number  *float64           `avro:"number" json:"number,omitempty"`
	Groups  map[string]float64 `avro:"groups" json:"groups,omitempty"`
	Vector  []float64          `avro:"vector" json:"vector,omitempty"`
	Last    []LoggedAction     `avro:"last" json:"last,omitempty"`
	Top     []LoggedCount      `avro:"top" json:"top,omitempty"`
	// Sequence is the JSON of a sequence: an object of columns.
	Sequence string `avro:"sequence" json:"sequence,omitempty"`
}

// LoggedAction is one action of a list of newest actions.
type LoggedAction struct {
	Object ID     `avro:"object" json:"object"`
	Verb   Verb   `avro:"verb" json:"verb"`
	Time   Micros `avro:"time" json:"time"` // floored to milliseconds
}

// LoggedCount is one value of a list of most frequent values.
type LoggedCount struct {
	Value string `avro:"value" json:"value"`
	Count int64  `avro:"count" json:"count"`
}
