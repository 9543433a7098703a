package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// The streams of input events.
const (
	StreamPins       = "pins"
	StreamFollows    = "follows"
	StreamActions    = "actions"
	StreamUsers      = "users"
	StreamCandidates = "candidates"
)

// MaxLineBytes is the maximum length of an event's JSON form.
const MaxLineBytes = MaxRecordBytes

// Line is one input event and its stream.
type Line struct {
	Stream string // one of the Stream constants
	Event  any    // *PinEvent, *FollowEvent, *ActionEvent, *UserEvent or *Offer, according to Stream
	Key    string // the record key: the object, or the user of an Offer
}

// Validate validates the event with the event's own Validate method.
func (l Line) Validate(arrival Micros, known Verbs) error {
	switch e := l.Event.(type) {
	case *PinEvent:
		return e.Validate(arrival)
	case *FollowEvent:
		return e.Validate(arrival)
	case *ActionEvent:
		return e.Validate(arrival, known)
	case *UserEvent:
		return e.Validate(arrival)
	case *Offer:
		return e.Validate(arrival)
	}
	return fmt.Errorf("validate line: %T is no event from outside", l.Event)
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

// User returns the user whose event it is: the actor, of an Offer the user whom it is for. "": nobody, an anonymous action.
func (l Line) User() UserID {
	switch e := l.Event.(type) {
	case *PinEvent:
		return e.Actor
	case *FollowEvent:
		return e.Actor
	case *ActionEvent:
		return e.Actor
	case *UserEvent:
		return e.Actor
	case *Offer:
		return e.User
	}
	return ""
}

// ParseLine parses the JSON form of an event: one object with the names of the Avro fields and "stream". A time is RFC 3339
// text or an integer of microseconds since 1970. board, embedding and the actor of an action may be null or absent.
// interests, title, link, surface and attributes may be absent. Repeated interests are dropped; the first of each is kept.
//
// ParseLine returns a *BadRecordError that names every affected field for any other form: unknown, repeated or missing
// fields, another type, null inside a list, text that is not UTF-8, more than MaxLineBytes, or anything after the object.
// ParseLine checks only the form; see Line.Validate for the rest.
func ParseLine(line []byte) (Line, error) {
	if len(line) > MaxLineBytes {
		return Line{}, badf("%d bytes, at most %d are allowed", len(line), MaxLineBytes)
	}
	if !utf8.Valid(line) {
		return Line{}, Bad(errText.Error())
	}
	raw, err := parseJSON(line)
	if err != nil {
		return Line{}, Bad(err.Error())
	}
	var p problems
	o, err := parseObject(raw, "", &p)
	if err != nil {
		return Line{}, Bad(err.Error())
	}
	l := o.line()
	o.close()
	if err := p.err(); err != nil {
		return Line{}, err
	}
	return l, nil
}

func (o *object) line() Line {
	var stream string
	o.field("stream", required, textInto(&stream))
	switch stream {
	case StreamPins:
		e := new(PinEvent)
		o.pin(e)
		return Line{stream, e, e.Key()}
	case StreamFollows:
		e := new(FollowEvent)
		o.event(&e.Event, required)
		return Line{stream, e, e.Key()}
	case StreamActions:
		e := new(ActionEvent)
		o.action(e)
		return Line{stream, e, e.Key()}
	case StreamUsers:
		e := new(UserEvent)
		o.user(e)
		return Line{stream, e, e.Key()}
	case StreamCandidates:
		e := new(Offer)
		o.offer(e)
		return Line{stream, e, e.Key()}
	}
	if len(o.p.told) == 0 {
		o.p.notef("stream", "unknown stream %s; known are pins, follows, actions, users, candidates", quote(stream))
	}
	o.members = nil // without a stream, no field name is known
	return Line{}
}

func (o *object) event(e *Event, actor rule) {
	o.field("id", required, textInto(&e.ID))
	o.field("time", required, microsInto(&e.Time))
	o.field("actor", actor, textInto(&e.Actor))
	o.field("verb", required, textInto(&e.Verb))
	o.field("object", required, textInto(&e.Object))
}

func (o *object) pin(e *PinEvent) {
	o.event(&e.Event, required)
	o.field("board", nullable, textInto(&e.Board))
	o.field("interests", optional, interestsInto(&e.Interests))
	o.field("title", optional, textInto(&e.Title))
	o.field("link", optional, textInto(&e.Link))
	o.field("attributes", optional, attributesInto(&e.Attributes))
	o.field("embedding", nullable, embeddingInto(&e.Embedding))
}

func (o *object) action(e *ActionEvent) {
	o.event(&e.Event, nullable)
	o.field("board", nullable, textInto(&e.Board))
	o.field("surface", optional, textInto(&e.Surface))
	o.field("attributes", optional, attributesInto(&e.Attributes))
}

func (o *object) user(e *UserEvent) {
	o.event(&e.Event, required)
	o.field("interests", optional, interestsInto(&e.Interests))
	o.field("attributes", optional, attributesInto(&e.Attributes))
	o.field("embedding", nullable, embeddingInto(&e.Embedding))
}

func (o *object) offer(e *Offer) {
	o.field("id", required, textInto(&e.ID))
	o.field("time", required, microsInto(&e.Time))
	o.field("user", required, textInto(&e.User))
	o.field("source", required, textInto(&e.Source))
	o.field("candidates", required, func(raw []byte) error {
		items, err := parseArray(raw)
		e.Candidates = make([]Candidate, len(items))
		for i, item := range items {
			o.candidate(fmt.Sprintf("candidates[%d]", i), item, &e.Candidates[i])
		}
		return err
	})
}

func (o *object) candidate(path string, raw []byte, c *Candidate) {
	inner, err := parseObject(raw, path+".", o.p)
	if err != nil {
		o.p.note(path, err)
		return
	}
	inner.field("pin", required, textInto(&c.Pin))
	inner.field("author", optional, textInto(&c.Author)) // AppendLine omits an empty author; Validate requires one
	inner.field("board", nullable, textInto(&c.Board))
	inner.field("interests", optional, interestsInto(&c.Interests))
	inner.field("created", required, microsInto(&c.Created))
	inner.field("score", required, numberInto(&c.Score))
	inner.close()
}

// AppendLine appends the JSON form of an event, without a line feed, so that ParseLine can read it: times as integers,
// absent fields omitted. It returns an error for a number that JSON cannot represent, and for an Event that does not belong
// to Stream.
func AppendLine(dst []byte, l Line) ([]byte, error) {
	if want := streamOf(l.Event); want == "" || want != l.Stream {
		return nil, fmt.Errorf("write line: %T is no event of stream %s", l.Event, quote(l.Stream))
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l.Event); err != nil {
		return nil, fmt.Errorf("write line of %s: %w", l.Stream, err)
	}
	dst = fmt.Appendf(dst, `{"stream":%q,`, l.Stream)
	return append(dst, bytes.TrimSuffix(body.Bytes()[1:], []byte("\n"))...), nil
}

func streamOf(event any) string {
	switch event.(type) {
	case *PinEvent:
		return StreamPins
	case *FollowEvent:
		return StreamFollows
	case *ActionEvent:
		return StreamActions
	case *UserEvent:
		return StreamUsers
	case *Offer:
		return StreamCandidates
	}
	return ""
}
