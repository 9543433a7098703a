package schemas

// Offer is a record of the topic candidates: pins that an external system offers to one user. Key: the user.
type Offer struct {
	ID         string      `avro:"id" json:"id"`
	Time       Micros      `avro:"time" json:"time"`
	User       UserID      `avro:"user" json:"user"`
	Source     Source      `avro:"source" json:"source"`
	Candidates []Candidate `avro:"candidates" json:"candidates"`
}

// Candidate is one pin of an Offer.
type Candidate struct {
	Pin       PinID     `avro:"pin" json:"pin"`
	Facets              // author, board (null in Avro is "" here), interests
	Created   Micros    `avro:"created" json:"created"`
	PoolScore PoolScore `avro:"score" json:"score"` // write-time score, compared only within its source
}

// Key returns the record key of the topic candidates: the user.
func (o *Offer) Key() string { return string(o.User) }

func (o *Offer) author() UserID { return o.User }

func (o *Offer) visit(v fieldVisitor) {
	v.text("id", &o.ID, textBounds{maxBytes: MaxEventIDBytes})
	v.time("time", &o.Time)
	v.text("user", (*string)(&o.User), textBounds{kinds: KindUser})
	v.text("source", (*string)(&o.Source), textBounds{maxBytes: MaxSourceBytes, check: checkOffered})
	v.candidates("candidates", &o.Candidates)
}

// Validate checks one candidate as the function Validate checks those of an Offer.
func (c *Candidate) Validate(arrival Micros) error {
	check := checker{arrival: arrival}
	c.visit(&check)
	return check.err()
}

func (c *Candidate) visit(v fieldVisitor) {
	v.text("pin", (*string)(&c.Pin), textBounds{kinds: KindPin})
	c.Facets.visit(v)
	v.time("created", &c.Created)
	v.number("score", (*float64)(&c.PoolScore))
}
