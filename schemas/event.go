package schemas

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
