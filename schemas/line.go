package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// MaxLineBytes is the maximum length of an event's JSON form.
const MaxLineBytes = MaxRecordBytes

// ParseLine parses the JSON form of an event: one object with the names of the Avro fields and "stream". A time is RFC 3339
// text or an integer of microseconds since 1970. board, embedding and the actor of an action may be null or absent.
// interests, title, link, surface and attributes may be absent. Repeated interests are dropped; the first of each is kept.
//
// ParseLine returns a *BadRecordError that names every affected field for any other form: unknown, repeated or missing
// fields, another type, null inside a list, text that is not UTF-8, more than MaxLineBytes, or data after the object.
// ParseLine checks only the form; see Line.Validate for the rest.
func ParseLine(line []byte) (Line, error) {
	if len(line) > MaxLineBytes {
		return Line{}, badf("%d bytes, at most %d are allowed", len(line), MaxLineBytes)
	}
	var p problems
	o, err := parseObject(line, "", &p)
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

// line reads an event of any stream.
func (o *object) line() Line {
	var stream string
	o.field("stream", required, textInto(&stream))
	event := NewInput(stream)
	if event == nil {
		if len(o.p.listed) == 0 {
			o.p.notef("stream", "unknown stream %s; known are %s", quote(stream), strings.Join(InputStreams(), ", "))
		}
		o.members = nil // without a stream, every field would be reported as unknown
		return Line{}
	}
	event.visit(o)
	return Line{stream, event, event.Key()}
}

// AppendLine appends the JSON form of an event, without a line feed, so that ParseLine can read it: times as integers,
// absent fields omitted. It returns an error for a number that JSON cannot represent, and for an Event that does not belong
// to Stream.
func AppendLine(dst []byte, l Line) ([]byte, error) {
	if want := streamOf(l.Event); want == "" || want != l.Stream {
		return nil, fmt.Errorf("write line: %T is not an event of stream %s", l.Event, quote(l.Stream))
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
