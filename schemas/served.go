package schemas

// Served says what a visit showed: the new items in their order, and all else the generator must remember. Topic
// served, key: User. Published and acknowledged before the answer leaves; the ID makes a repeat harmless.
type Served struct {
	ID    string             `avro:"id" json:"id"`
	User  UserID             `avro:"user" json:"user"`
	Time  Micros             `avro:"time" json:"time"`
	Feed  string             `avro:"feed" json:"feed"`
	Items []ServedItem       `avro:"items" json:"items"`
	Mix   map[string]float64 `avro:"mix" json:"mix,omitempty"` // impressions by source with their decay, after this visit
}

// ServedItem is one new item of a visit.
type ServedItem struct {
	Pin    PinID  `avro:"pin" json:"pin"`
	Source Source `avro:"source" json:"source"`
	Facets
	Score   float64 `avro:"score" json:"score"`     // the generator's
	Created Micros  `avro:"created" json:"created"` // of the pin
}
