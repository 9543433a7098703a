package schemas

import (
	"maps"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// ActionEvent is a record of the topic actions: a view, closeup, click, save or other action on a pin. Key: the pin.
type ActionEvent struct {
	Event
	Board      BoardID           `avro:"board" json:"board,omitempty"` // board of a save; null in Avro is "" here
	Surface    string            `avro:"surface" json:"surface,omitempty"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"` // attributes of the verb: device, referrer, dwell …
}

func (e *ActionEvent) visit(v fieldVisitor) {
	e.Event.visit(v, textBounds{rule: nullable, kinds: KindUser}, textBounds{actionVerb: true}, KindPin)
	v.text("board", (*string)(&e.Board), textBounds{rule: nullable, kinds: KindBoard})
	v.text("surface", &e.Surface, textBounds{rule: optional, maxBytes: MaxSurfaceBytes})
	v.attributes("attributes", &e.Attributes)
}

// Verbs are the known verbs of actions with their weights: positive, zero or negative.
type Verbs map[Verb]float64

// DefaultVerbs returns the predefined verbs: view 0.1, closeup 0.5, click 1, save 3, hide -3, report -5.
func DefaultVerbs() Verbs {
	return Verbs{View: 0.1, Closeup: 0.5, Click: 1, Save: 3, Hide: -3, Report: -5}
}

// With returns a copy of v in which the verbs of more are added or replaced.
func (v Verbs) With(more Verbs) Verbs {
	all := Verbs{}
	maps.Copy(all, v)
	maps.Copy(all, more)
	return all
}

// Validate returns an error that joins all problems. A name has 1-64 bytes without control characters and is not
// "impression", which counts impressions. A weight is finite.
func (v Verbs) Validate() error {
	var problems settings.Problems
	for _, verb := range slices.Sorted(maps.Keys(v)) {
		name, weight, err := quote(string(verb)), v[verb], checkText(string(verb), MaxVerbBytes)
		problems.Want(err == nil, "verb %s: %w", name, err)
		problems.Want(verb != ImpressionCount, "verb %q: the name is reserved for impressions", verb)
		problems.Want(!math.IsNaN(weight) && !math.IsInf(weight, 0), "verb %s: weight %g is not finite", name, weight)
	}
	return problems.Err()
}
