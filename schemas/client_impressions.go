package schemas

import (
	"fmt"
	"iter"
)

// ClientImpressions is a record of the topic client-impressions: the pins of a visit that were on the user's screen. Key:
// the user. Each pin becomes an action with the verb ImpressionCount.
type ClientImpressions struct {
	ID    string  `avro:"id" json:"id"`
	Time  Micros  `avro:"time" json:"time"`
	User  UserID  `avro:"user" json:"user"`
	Visit string  `avro:"visit" json:"visit"` // chosen by the client
	Pins  []PinID `avro:"pins" json:"pins"`   // each once, after Decode or ParseLine
}

// Key returns the key of the record: the user.
func (i *ClientImpressions) Key() string { return string(i.User) }

func (i *ClientImpressions) author() UserID { return i.User }

func (i *ClientImpressions) visit(v fieldVisitor) {
	v.text("id", &i.ID, textBounds{maxBytes: MaxEventIDBytes - len("/99")}) // see Actions
	v.time("time", &i.Time)
	v.text("user", (*string)(&i.User), textBounds{kinds: KindUser})
	v.text("visit", &i.Visit, textBounds{maxBytes: MaxEventIDBytes})
	v.ids("pins", (*idsOf[PinID])(&i.Pins), idBounds{required, KindPin, MaxClientImpressions})
}

func (i *ClientImpressions) removeRepeats() { i.Pins = distinct(i.Pins) }

// Actions is an iterator over the actions of the pins. The visit is their attribute.
func (i *ClientImpressions) Actions() iter.Seq[*ActionEvent] {
	return func(yield func(*ActionEvent) bool) {
		for n, pin := range i.Pins {
			e := Event{ID: fmt.Sprintf("%s/%d", i.ID, n), Time: i.Time, Actor: i.User, Verb: ImpressionCount, Object: ID(pin)}
			if !yield(&ActionEvent{Event: e, Attributes: map[string]string{"visit": i.Visit}}) {
				return
			}
		}
	}
}
