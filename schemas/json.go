package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// What encoding/json is too lenient in for events: it takes names in any case, the last of repeated ones, null for
// anything, a broken surrogate for U+FFFD. Here each of these is an error.

// parseObject splits a JSON object into its members.
func parseObject(raw []byte, path string, p *problems) (*object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, wanted("an object", raw, err)
	}
	o := &object{members: map[string]json.RawMessage{}, path: path, p: p}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, wanted("an object", raw, err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, wanted("an object", raw, err)
		}
		if _, twice := o.members[name.(string)]; twice {
			return nil, fmt.Errorf("field %s stands twice", quote(name.(string)))
		}
		o.members[name.(string)] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, wanted("an object", raw, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something after the object")
	}
	return o, nil
}

func parseArray(raw json.RawMessage) ([]json.RawMessage, error) {
	var items []json.RawMessage
	err := json.Unmarshal(raw, &items)
	if err != nil || items == nil {
		return nil, wanted("an array", raw, err)
	}
	return items, nil
}

// wanted says what stands there instead. Raw is not always whole JSON.
func wanted(what string, raw []byte, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %w (byte %d)", err, syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("not JSON: ends early")
	}
	return fmt.Errorf("want %s, got %s", what, typeName(raw))
}

func typeName(raw []byte) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func textInto[T ~string](into *T) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		s, err := parseText(raw)
		*into = T(s)
		return err
	}
}

func parseText(raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return "", wanted("a string", raw, nil)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", wanted("a string", raw, err)
	}
	if strings.ContainsRune(s, '\uFFFD') && !writesReplacement(raw) {
		return "", errors.New("half of a surrogate pair")
	}
	return s, nil
}

// writesReplacement says that U+FFFD is meant: it stands there, or its escape does.
func writesReplacement(raw []byte) bool {
	return bytes.ContainsRune(raw, '\uFFFD') || bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`))
}

func microsInto(into *Micros) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		if raw[0] != '"' {
			return wantMicros(raw, json.Unmarshal(raw, (*int64)(into)))
		}
		var t time.Time
		err := json.Unmarshal(raw, &t)
		*into = MicrosOf(t)
		return wantMicros(raw, err)
	}
}

func wantMicros(raw json.RawMessage, err error) error {
	if err == nil && raw[0] != 'n' { // null leaves a number as it is
		return nil
	}
	return fmt.Errorf("want RFC 3339 text or an integer of microseconds, got %s", clip(string(raw)))
}

func numberInto(into *float64) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		if err := json.Unmarshal(raw, into); err != nil || raw[0] == 'n' {
			return fmt.Errorf("want a number, got %s", clip(string(raw)))
		}
		return nil
	}
}

func interestsInto(into *[]InterestID) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		items, err := parseArray(raw)
		if err != nil {
			return err
		}
		ids := make([]InterestID, len(items))
		for i, item := range items {
			if err := textInto(&ids[i])(item); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
		*into = distinct(ids)
		return nil
	}
}

func (o *object) attributesInto(into *map[string]string) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		inner, err := parseObject(raw, "", nil)
		if err != nil {
			return err
		}
		*into = make(map[string]string, len(inner.members))
		for name, value := range inner.members {
			s, err := parseText(value)
			if err != nil {
				o.p.note(o.path+"attributes: "+quote(name), err)
			}
			(*into)[name] = s
		}
		return nil
	}
}

func embeddingInto(into *[]float32) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		if raw[0] != '[' {
			return wanted("an array of numbers", raw, nil)
		}
		if bytes.Contains(raw, []byte("null")) {
			return errors.New("want an array of numbers, null is none")
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("want an array of numbers of 32 bits: %w", err)
		}
		return nil
	}
}

// clip shortens what came from outside for a message, as it stands.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
