package schemas

import "fmt"

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
	Pin     PinID   `avro:"pin" json:"pin"`
	Facets          // author, board (null in Avro is "" here), interests
	Created Micros  `avro:"created" json:"created"`
	Score   float64 `avro:"score" json:"score"` // write-time score, compared only within its source
}

// Key returns the record key of the topic candidates: the user.
func (o *Offer) Key() string { return string(o.User) }

// CheckKey returns a *BadRecordError if the record's key is not its user.
func (o *Offer) CheckKey(key string) error { return checkKey(key, o.Key()) }

// Validate checks every field against its bounds; arrival is the record's timestamp. The source must pass
// Source.CheckOffered. Validate returns nil, or one *BadRecordError that lists all problems.
func (o *Offer) Validate(arrival Micros) error {
	var p problems
	p.note("id", checkText(o.ID, MaxEventIDBytes))
	p.time("time", o.Time, arrival)
	p.id("user", string(o.User), KindUser)
	p.note("source", o.Source.CheckOffered())
	p.count("candidates", len(o.Candidates), MaxCandidates)
	for i := range o.Candidates[:min(len(o.Candidates), MaxCandidates)] {
		var of problems
		o.Candidates[i].check(&of, arrival)
		p.note(fmt.Sprintf("candidates[%d]", i), of.err())
	}
	return p.err()
}

// Validate checks one candidate like Offer.Validate.
func (c *Candidate) Validate(arrival Micros) error {
	var p problems
	c.check(&p, arrival)
	return p.err()
}

func (c *Candidate) check(p *problems, arrival Micros) {
	p.id("pin", string(c.Pin), KindPin)
	p.id("author", string(c.Author), KindUser)
	p.facets(c.Board, c.Interests)
	p.time("created", c.Created, arrival)
	p.finite("score", c.Score)
}
