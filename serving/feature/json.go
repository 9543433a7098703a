package feature

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendJSON appends the same bytes as json.Marshal. An answer has up to MaxAnswers values, and the reflection of
// encoding/json would take most of the time of a large one.
func (a Answer) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"values":`...)
	dst = appendObject(dst, a.Values, func(dst []byte, of map[string]Value) []byte { return appendObject(dst, of, appendValue) })
	dst = append(dst, `,"missing":`...)
	dst = appendList(dst, a.Missing, func(dst []byte, m Missing) []byte {
		dst = appendString(append(dst, `{"entity":`...), m.Entity)
		dst = appendString(append(dst, `,"feature":`...), m.Feature)
		return append(appendString(append(dst, `,"reason":`...), string(m.Reason)), '}')
	})
	dst = appendList(append(dst, `,"degraded":`...), a.Degraded, appendString[string])
	dst = appendTime(append(dst, `,"as_of":`...), a.AsOf)
	dst = append(dst, `,"fresh":`...)
	if a.Fresh == nil {
		return append(dst, "null}"...), nil
	}
	return append(appendTime(dst, *a.Fresh), '}'), nil
}

func appendValue(dst []byte, v Value) []byte {
	switch v := v.(type) {
	case Number:
		return appendNumber(dst, float64(v))
	case Groups:
		return appendObject(dst, v, appendNumber)
	case Vector:
		return appendList(dst, v, appendNumber)
	case Last:
		return appendList(dst, v, func(dst []byte, a Acted) []byte {
			dst = appendString(append(dst, `{"object":`...), a.Object)
			dst = appendString(append(dst, `,"verb":`...), a.Verb)
			return append(appendTime(append(dst, `,"timestamp":`...), a.Timestamp), '}')
		})
	case Top:
		return appendList(dst, v, func(dst []byte, c Counted) []byte {
			dst = appendString(append(dst, `{"value":`...), c.Value)
			return append(strconv.AppendInt(append(dst, `,"count":`...), c.Count, 10), '}')
		})
	}
	return append(dst, "null"...)
}

// appendObject writes an object with sorted keys.
func appendObject[T any](dst []byte, m map[string]T, value func([]byte, T) []byte) []byte {
	if m == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value(append(appendString(dst, key), ':'), m[key])
	}
	return append(dst, '}')
}

func appendList[T any](dst []byte, list []T, value func([]byte, T) []byte) []byte {
	if list == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value(dst, v)
	}
	return append(dst, ']')
}

// appendString writes a text. Texts that need escaping are rare and go through encoding/json.
func appendString[T ~string](dst []byte, s T) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f {
			text, _ := json.Marshal(string(s)) // never an error for a string
			return append(dst, text...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// appendNumber writes a finite number as encoding/json and ECMAScript do.
func appendNumber(dst []byte, x float64) []byte {
	abs := math.Abs(x)
	if abs == 0 || abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, x, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, x, 'e', -1, 64)
	if n := len(dst); n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' { // e-09 is written e-9
		dst = append(dst[:n-2], dst[n-1])
	}
	return dst
}

func appendTime(dst []byte, t time.Time) []byte {
	return append(t.AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
}

// UnmarshalJSON reads the output of AppendJSON. An empty list, which was a Last or a Top, becomes a Last.
func (a *Answer) UnmarshalJSON(text []byte) error {
	type plain Answer // without this method
	var raw struct {
		plain
		Values map[string]map[string]json.RawMessage `json:"values"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	*a = Answer(raw.plain)
	a.Values = make(map[string]map[string]Value, len(raw.Values))
	for entity, features := range raw.Values {
		a.Values[entity] = make(map[string]Value, len(features))
		for name, value := range features {
			v, err := parseValue(value)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", name, entity, err)
			}
			a.Values[entity][name] = v
		}
	}
	return nil
}

// parseValue derives the type of a value from its form.
func parseValue(text json.RawMessage) (Value, error) {
	switch {
	case bytes.Equal(text, []byte("null")):
		return nil, nil
	case bytes.Equal(text, []byte("[]")):
		return Last{}, nil
	case text[0] == '{':
		return parseAs[Groups](text)
	case text[0] != '[':
		return parseAs[Number](text)
	}
	var first []struct {
		Object *string `json:"object"`
	}
	if json.Unmarshal(text, &first) != nil {
		return parseAs[Vector](text)
	}
	if first[0].Object != nil {
		return parseAs[Last](text)
	}
	return parseAs[Top](text)
}

func parseAs[T Value](text []byte) (Value, error) {
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	return v, nil
}
