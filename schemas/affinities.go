package schemas

// Affinities are a user's strongest affinities, strongest first. Topic affinities, key: User.
type Affinities struct {
	User UserID     `avro:"user" json:"user"`
	Time Micros     `avro:"time" json:"time"`
	Top  []Affinity `avro:"top" json:"top"`
}

// Affinity is the decayed, weighted sum of a user's actions on pins with one facet, as of Affinities.Time.
type Affinity struct {
	Facet ID      `avro:"facet" json:"facet"` // author, board or interest
	Value float64 `avro:"value" json:"value"`
}
