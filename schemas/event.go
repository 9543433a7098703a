package schemas

import (
	"fmt"
	"slices"
)

// Verb is what an actor does to an object.
type Verb string

// The predefined verbs. The configuration can add verbs of actions, each with a weight.
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

// Event is the common part of every input event except Offer: who did what to what, and when.
type Event struct {
	ID     string `avro:"id" json:"id"`         // unique over all streams, 1-128 bytes; a repeat has the same id
	Time   Micros `avro:"time" json:"time"`     // event time; determines order, windows and decay
	Actor  UserID `avro:"actor" json:"actor"`   // who
	Verb   Verb   `avro:"verb" json:"verb"`     // what
	Object ID     `avro:"object" json:"object"` // to what
}

// Key returns the record key of the event's topic: its object.
func (e *Event) Key() string { return string(e.Object) }

// CheckKey returns a *BadRecordError if the record's key is not its object.
func (e *Event) CheckKey(key string) error { return checkKey(key, e.Key()) }

// Anonymous reports whether the event has no actor. An action without an actor is valid, and is dropped and counted. Any
// other event without an actor is a bad record.
func (e *Event) Anonymous() bool { return e.Actor == "" }

// check adds the problems of the fields that all events have.
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
