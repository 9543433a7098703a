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

// PinEvent is a record of the topic pins: create, update or delete of a pin. Key: the pin.
type PinEvent struct {
	Event
	Board      BoardID           `avro:"board" json:"board,omitempty"` // null in Avro is "" here
	Interests  []InterestID      `avro:"interests" json:"interests,omitempty"`
	Title      string            `avro:"title" json:"title,omitempty"`
	Link       string            `avro:"link" json:"link,omitempty"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // null in Avro is nil here
}

// FollowEvent is a record of the topic follows: follow, unfollow, block or unblock. Key: the followee.
type FollowEvent struct {
	Event
}

// ActionEvent is a record of the topic actions: view, click, save … of a pin. Key: the pin.
type ActionEvent struct {
	Event
	Board      BoardID           `avro:"board" json:"board,omitempty"` // where a save went; null in Avro is "" here
	Surface    string            `avro:"surface" json:"surface,omitempty"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"` // the verb's: device, referrer, dwell …
}

// UserEvent is a record of the topic users: update or delete of a user. Key: the user, who is actor and object.
type UserEvent struct {
	Event
	Interests  []InterestID      `avro:"interests" json:"interests,omitempty"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // null in Avro is nil here
}

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
