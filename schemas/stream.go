package schemas

import (
	"fmt"

	"github.com/smartfeed/smartfeed/internal/convert"
)

// The streams of input events. Each is a Kafka topic with the same name.
const (
	StreamUsers             = "users"
	StreamFollows           = "follows"
	StreamPins              = "pins"
	StreamActions           = "actions"
	StreamCandidates        = "candidates"
	StreamClientImpressions = "client-impressions"
)

// inputStreams is the registry of the streams that clients may write to, in the order in which their events depend on each
// other. To add a stream, add a row here and one to the topic catalogue in package topics.
func inputStreams() []inputStream {
	return []inputStream{
		inputOf[UserEvent](StreamUsers),
		inputOf[FollowEvent](StreamFollows),
		inputOf[PinEvent](StreamPins),
		inputOf[ActionEvent](StreamActions),
		inputOf[Offer](StreamCandidates),
		inputOf[ClientImpressions](StreamClientImpressions),
	}
}

// Input is an input event: an event that clients publish. The types in the registry of input streams implement it.
type Input interface {
	// Key returns the key of the event's record.
	Key() string
	// author returns the user whose event it is, or "" for an anonymous action.
	author() UserID
	// visit calls v for each field, in the order of the Avro schema. It is the only list of the fields' names and bounds:
	// JSON lines and validation use it, and a test compares it with the API's documentation.
	visit(v fieldVisitor)
}

// inputStream is a row of the registry.
type inputStream struct {
	name string
	make func() Input           // returns a new zero event
	has  func(event Input) bool // reports whether event is of the stream's type
}

func inputOf[T any, P interface {
	*T
	Input
}](name string) inputStream {
	return inputStream{
		name: name,
		make: func() Input { return P(new(T)) },
		has:  func(event Input) bool { _, ok := event.(P); return ok },
	}
}

// InputStreams returns the names of the streams that clients may write to.
func InputStreams() []string {
	return convert.All(inputStreams(), func(s inputStream) string { return s.name })
}

// NewInput returns a new zero event of an input stream, or nil if there is no such stream.
func NewInput(stream string) Input {
	for _, s := range inputStreams() {
		if s.name == stream {
			return s.make()
		}
	}
	return nil
}

// Line is one input event with its stream and key.
type Line struct {
	Stream string // one of InputStreams
	Event  Input
	Key    string // key of the record
}

// NewLine returns the line of an event.
func NewLine(event Input) Line { return Line{streamOf(event), event, event.Key()} }

// streamOf returns the stream of an event, or "" for nil.
func streamOf(event Input) string {
	for _, s := range inputStreams() {
		if s.has(event) {
			return s.name
		}
	}
	return ""
}

// Validate checks the event; see the function Validate.
func (l Line) Validate(arrival Micros, verbs Verbs) error {
	if l.Event == nil {
		return fmt.Errorf("validate line of %s: no event", quote(l.Stream))
	}
	return Validate(l.Event, arrival, verbs)
}

// Deletes reports whether the event deletes a pin or a user permanently. It returns the id of the object and of the event.
func (l Line) Deletes() (object, event string, ok bool) {
	switch e := l.Event.(type) {
	case *PinEvent:
		return string(e.Object), e.ID, e.Verb == Delete
	case *UserEvent:
		return string(e.Object), e.ID, e.Verb == Delete
	}
	return "", "", false
}

// User returns the user whose event it is: the actor, or the user that an Offer is for. It returns "" for an anonymous
// action.
func (l Line) User() UserID {
	if l.Event == nil {
		return ""
	}
	return l.Event.author()
}
