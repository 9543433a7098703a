package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The package reads objects and arrays one level at a time, so that one line reports the problems of all fields.
// encoding/json is too lenient for events: it accepts the last of repeated names, and an unpaired surrogate as U+FFFD.

const (
	maxMembers = 256     // of one JSON object: far above any event, but it bounds the search for names
	maxEntries = 1 << 12 // of one JSON array of texts or objects
)

// object is a JSON object that is read field by field. Problems are added to p.
type object struct {
	members []member
	path    string // prefix of each name in messages
	p       *problems
}

type member struct {
	name  string
	value []byte
	used  bool
}

// field reads one field by its name.
func (o *object) field(name string, r rule, read func(raw []byte) error) {
	i := slices.IndexFunc(o.members, func(m member) bool { return m.name == name })
	switch {
	case i < 0 && r == required:
		o.p.notef(o.path+name, "missing")
		return
	case i < 0:
		return
	}
	o.members[i].used = true
	if raw := o.members[i].value; r != nullable || raw[0] != 'n' {
		o.p.note(o.path+name, read(raw))
	}
}

// close reports the fields that were not read as unknown.
func (o *object) close() {
	for _, m := range o.members {
		if !m.used {
			o.p.notef(o.path+truncated(m.name), "unknown field")
		}
	}
}

// parseObject splits an object into its members.
func parseObject(raw []byte, path string, p *problems) (*object, error) {
	o := &object{path: path, p: p, members: make([]member, 0, 16)}
	return o, split(raw, '{', func(dec *jsontext.Decoder) error {
		if len(o.members) == maxMembers {
			return fmt.Errorf("more than %d fields", maxMembers)
		}
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		m := member{name: name.String()}
		m.value, err = readValue(dec, raw)
		o.members = append(o.members, m)
		return err
	})
}

// parseArray splits an array into at most maxEntries entries.
func parseArray(raw []byte) (entries [][]byte, err error) {
	err = split(raw, '[', func(dec *jsontext.Decoder) error {
		if len(entries) == maxEntries {
			return fmt.Errorf("more than %d entries", maxEntries)
		}
		entry, err := readValue(dec, raw)
		entries = append(entries, entry)
		return err
	})
	return entries, err
}

// split calls read at each member of raw, which must be one object or array.
func split(raw []byte, kind jsontext.Kind, read func(dec *jsontext.Decoder) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	start, err := dec.ReadToken()
	if err == nil {
		err = checkKind(start.Kind(), kind)
	}
	for err == nil && dec.PeekKind() != '}' && dec.PeekKind() != ']' {
		err = read(dec)
	}
	if err == nil {
		_, err = dec.ReadToken()
	}
	if err == nil && len(bytes.Trim(dec.UnreadBuffer(), " \t\r\n")) > 0 {
		err = errors.New("data after the object")
	}
	return syntaxError(err)
}

func syntaxError(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.Is(err, io.EOF) || errors.As(err, &syntax) {
		return errors.New("not JSON: " + strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	return err
}

// readValue returns the next value, as a part of raw.
func readValue(dec *jsontext.Decoder, raw []byte) ([]byte, error) {
	value, err := dec.ReadValue()
	end := int(dec.InputOffset())
	return raw[end-len(value) : end], err
}

func parseText(raw []byte) (string, error) {
	if err := checkKind(jsontext.Value(raw).Kind(), '"'); err != nil {
		return "", err
	}
	text, err := jsontext.AppendUnquote(make([]byte, 0, 64), raw)
	return string(text), err
}

// kindNames are the names of types in messages.
var kindNames = map[jsontext.Kind]string{
	'{': "an object", '[': "an array", '"': "a string", '0': "a number", 't': "a boolean", 'f': "a boolean", 'n': "null",
}

func checkKind(got, want jsontext.Kind) error {
	if got != want {
		return fmt.Errorf("want %s, got %s", kindNames[want], kindNames[got])
	}
	return nil
}

// truncated truncates untrusted input for a message, without quoting it.
func truncated(s string) string {
	const limit = 64
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
