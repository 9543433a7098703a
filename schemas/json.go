package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// encoding/json validates the JSON and decodes escaped text. The package splits objects itself, because the library is too
// lenient for events: it accepts names in any case, the last of repeated names, null for any type, and an unpaired surrogate
// as U+FFFD. (It is also five times slower.)

const (
	maxMembers = 256     // of one JSON object: far above any event, but it bounds the comparison of all names with each other
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

// parseJSON checks that raw is exactly one JSON value, and trims the space around it.
func parseJSON(raw []byte) ([]byte, error) {
	if !json.Valid(raw) {
		return nil, syntaxError(raw)
	}
	return bytes.Trim(raw, " \t\r\n"), nil
}

func syntaxError(raw []byte) error {
	var value json.RawMessage
	err := json.NewDecoder(bytes.NewReader(raw)).Decode(&value)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return errors.New("data after the object")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("not JSON: unexpected end")
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %w (byte %d)", err, syntax.Offset)
	}
	return fmt.Errorf("not JSON: %w", err)
}

// parseObject splits an object into its members. Like the functions below, it accepts only input that parseJSON has
// accepted.
func parseObject(raw []byte, path string, p *problems) (*object, error) {
	if raw[0] != '{' {
		return nil, typeError("an object", raw)
	}
	o := &object{path: path, p: p, members: make([]member, 0, 16)}
	for at := next(raw, 1); raw[at] != '}'; at = comma(raw, at) {
		end := valueEnd(raw, at)
		name, err := parseText(raw[at:end])
		if err != nil {
			return nil, fmt.Errorf("name of a field: %w", err)
		}
		if slices.ContainsFunc(o.members, func(m member) bool { return m.name == name }) {
			return nil, fmt.Errorf("duplicate field %s", quote(name))
		}
		if len(o.members) == maxMembers {
			return nil, fmt.Errorf("more than %d fields", maxMembers)
		}
		at = next(raw, next(raw, end)+1) // skips the colon
		end = valueEnd(raw, at)
		o.members = append(o.members, member{name: name, value: raw[at:end]})
		at = end
	}
	return o, nil
}

// parseArray splits an array into at most maxEntries entries.
func parseArray(raw []byte) ([][]byte, error) {
	if raw[0] != '[' {
		return nil, typeError("an array", raw)
	}
	var items [][]byte
	for at := next(raw, 1); raw[at] != ']'; {
		if len(items) == maxEntries {
			return nil, fmt.Errorf("more than %d entries", maxEntries)
		}
		end := valueEnd(raw, at)
		items = append(items, raw[at:end])
		at = comma(raw, end)
	}
	return items, nil
}

// next returns the position of the first byte at or after at that is not a space.
func next(raw []byte, at int) int {
	for raw[at] == ' ' || raw[at] == '\t' || raw[at] == '\r' || raw[at] == '\n' {
		at++
	}
	return at
}

// comma returns the position of the next value after the end of a value, or of the end of the enclosing object or array.
func comma(raw []byte, at int) int {
	if at = next(raw, at); raw[at] == ',' {
		return next(raw, at+1)
	}
	return at
}

// valueEnd returns the end of the value that starts at at.
func valueEnd(raw []byte, at int) int {
	depth := 0
	for {
		switch raw[at] {
		case '"':
			at = textEnd(raw, at)
		case '{', '[':
			depth++
			at++
		case '}', ']':
			depth--
			at++
		case ',', ':', ' ', '\t', '\r', '\n':
			at++ // inside an object or array
		default:
			at = wordEnd(raw, at)
		}
		if depth == 0 {
			return at
		}
	}
}

func textEnd(raw []byte, at int) int {
	for at++; raw[at] != '"'; at++ {
		if raw[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// wordEnd returns the end of a number, true, false or null.
func wordEnd(raw []byte, at int) int {
	if n := bytes.IndexAny(raw[at:], ",]} \t\r\n"); n >= 0 {
		return at + n
	}
	return len(raw)
}

// typeError returns an error with the expected type and the actual one.
func typeError(what string, raw []byte) error {
	got := "a number"
	switch raw[0] {
	case '{':
		got = "an object"
	case '[':
		got = "an array"
	case '"':
		got = "a string"
	case 't', 'f':
		got = "a boolean"
	case 'n':
		got = "null"
	}
	return fmt.Errorf("want %s, got %s", what, got)
}

func parseText(raw []byte) (string, error) {
	if raw[0] != '"' {
		return "", typeError("a string", raw)
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("read text: %w", err)
	}
	if strings.ContainsRune(s, '\uFFFD') && !writesReplacement(raw) {
		return "", errors.New("unpaired surrogate")
	}
	return s, nil
}

// writesReplacement reports whether the text contains U+FFFD itself, literally or as an escape.
func writesReplacement(raw []byte) bool {
	return bytes.ContainsRune(raw, '\uFFFD') || bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`))
}

// truncated truncates untrusted input for a message, without quoting it.
func truncated(s string) string {
	const limit = 64
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
