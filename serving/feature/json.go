package feature

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendJSON appends what json.Marshal makes of the answer, byte for byte: an answer has up to MaxAnswers values, and
// most of the time of a large one would go into finding out by reflection what each of them is.
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

// appendObject writes the keys in their order.
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

// appendString writes a text. What has to be escaped is rare, and left to encoding/json.
func appendString[T ~string](dst []byte, s T) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f {
			text, _ := json.Marshal(string(s)) // of a string: never an error
			return append(dst, text...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// appendNumber writes a finite number as encoding/json does: as ECMAScript does.
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
