package schemas

// Offer is a record of the topic candidates: pins that another system offers to one user. Key: the user.
type Offer struct {
	ID         string      `avro:"id" json:"id"`
	Time       Micros      `avro:"time" json:"time"`
	User       UserID      `avro:"user" json:"user"`
	Source     Source      `avro:"source" json:"source"`
	Candidates []Candidate `avro:"candidates" json:"candidates"`
}

// Candidate is one pin of an Offer.
type Candidate struct {
	Pin     PinID   `avro:"pin" json:"pin"`
	Facets          // author, board, interests
	Created Micros  `avro:"created" json:"created"`
	Score   float64 `avro:"score" json:"score"` // write-time score, compared only within its source
}
