package schemas

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

// Anonymous reports whether the event has no actor. An action without an actor is valid, and is dropped and counted. Any
// other event without an actor is a bad record.
func (e *Event) Anonymous() bool { return e.Actor == "" }

func (e *Event) author() UserID { return e.Actor }

// visit visits the common fields of an event.
func (e *Event) visit(v fieldVisitor, actor, verb textBounds, objectKinds string) {
	v.text("id", &e.ID, textBounds{maxBytes: MaxEventIDBytes})
	v.time("time", &e.Time)
	v.text("actor", (*string)(&e.Actor), actor)
	v.text("verb", (*string)(&e.Verb), verb)
	v.text("object", (*string)(&e.Object), textBounds{kinds: objectKinds})
}
