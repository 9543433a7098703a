package schemas

import (
	"fmt"
	"slices"
)

// Verb is what an actor did to an object.
type Verb string

// The verbs that have a meaning of their own. Configuration may add verbs of actions, each with a weight.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"

	Follow   Verb = "follow"
	Unfollow Verb = "unfollow"
	Block    Verb = "block"
	Unblock  Verb = "unblock"

	View    Verb = "view"
	Closeup Verb = "closeup"
	Click   Verb = "click"
	Save    Verb = "save"
	Hide    Verb = "hide"
	Report  Verb = "report"
)

// Event is what every record from outside starts with: who did what to what, and when.
type Event struct {
	ID     string `avro:"id" json:"id"`         // unique over all streams, 1-128 bytes; a repeat has the same id
	Time   Micros `avro:"time" json:"time"`     // when it happened; decides order, windows, decay
	Actor  UserID `avro:"actor" json:"actor"`   // who
	Verb   Verb   `avro:"verb" json:"verb"`     // what
	Object ID     `avro:"object" json:"object"` // to what
}

// Key returns the record key of the event's topic, which is its object.
func (e *Event) Key() string { return string(e.Object) }

// CheckKey fails with a *BadRecordError on a record whose key is not its object.
func (e *Event) CheckKey(key string) error { return checkKey(key, e.Key()) }

// Anonymous says that nobody is named as the actor. Of an action that is no mistake: it is dropped and counted. Any other
// event that names nobody is a bad record.
func (e *Event) Anonymous() bool { return e.Actor == "" }

// check notes what is wrong with the fields that all events have.
func (e *Event) check(p *problems, arrival Micros, kinds ...string) {
	p.note("id", checkText(e.ID, MaxEventIDBytes))
	p.time("time", e.Time, arrival)
	p.id("object", string(e.Object), kinds...)
}

func (e *Event) checkActor(p *problems) { p.id("actor", string(e.Actor), KindUser) }

func (e *Event) checkVerb(p *problems, known ...Verb) {
	if !slices.Contains(known, e.Verb) {
		p.note("verb", unknownVerb(e.Verb, known))
	}
}

func unknownVerb(v Verb, known []Verb) error {
	return fmt.Errorf("unknown verb %s; known are %v", quote(string(v)), known)
}
