package feature

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Value is the value of a feature for one entity: a Number, Groups, Last, Top, a Vector or a Sequence; nil is null. In JSON it is
// the bare number, object or array.
type Value interface{ isValue() }

// Number is the value of an aggregate without grouping. It is finite.
type Number float64

// Groups are the finite numbers of an aggregate with a grouping, by group. It is never nil. Groups without actions are
// omitted.
type Groups map[string]float64

// Last are the newest actions, newest first. It is never nil.
type Last []Acted

// Acted is one action of Last.
type Acted struct {
	Object    schemas.ID   `json:"object"`
	Verb      schemas.Verb `json:"verb"`
	Timestamp time.Time    `json:"timestamp"` // UTC, floored to milliseconds
}

// Top are the most frequent values, most frequent first, ties by value ascending. It is never nil.
type Top []Counted

// Counted is one value of Top with the number of its actions.
type Counted struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// Vector is the element-wise mean of embeddings. It has at least one element, and all are finite.
type Vector []float64

func (Number) isValue() {}
func (Groups) isValue() {}
func (Last) isValue()   {}
func (Top) isValue()    {}
func (Vector) isValue() {}

// numberBytes is the approximate length of a number in JSON, with its key's punctuation.
const numberBytes = 24

// size returns the approximate length of a value in JSON, without a single number, which MaxAnswers limits.
func size(v Value) (bytes int) {
	switch v := v.(type) {
	case Groups:
		for name := range v {
			bytes += len(name) + numberBytes
		}
	case Last:
		for _, a := range v {
			bytes += len(a.Object) + len(a.Verb) + 3*numberBytes
		}
	case Top:
		for _, c := range v {
			bytes += len(c.Value) + 2*numberBytes
		}
	case Vector:
		bytes = len(v) * numberBytes
	case Sequence:
		bytes = v.size()
	}
	return bytes
}

// Reason is why a feature is listed in missing.
type Reason string

// The reasons. With Window and Cap, the value covers the part that was read. With Overflow, there may be a value, of
// the other groups. With every other reason, the value is null.
const (
	Empty     Reason = "empty"     // no input for a mean, minimum, maximum or cosine, or nothing to divide by
	Window    Reason = "window"    // the window reaches back further than the kept actions
	Cap       Reason = "cap"       // more actions or groups, or bytes of a remote store, than Config allows: the newest were read
	Overflow  Reason = "overflow"  // beyond the range of a float64
	Unknown   Reason = "pin"       // of a pair: the pin is unknown or was deleted
	Attribute Reason = "attribute" // of a pair: the pin has no such attribute, or no embedding of the user's length
	Erased    Reason = "deleted"   // the user was deleted
	Deadline  Reason = "deadline"  // not evaluated in time
	Failed    Reason = "store"     // the store could not be read
	TooLarge  Reason = "size"      // the answer would be larger than MaxAnswerBytes
)

// Result is the value of a feature for one entity, and why it or a part of it is missing, each reason once.
type Result struct {
	Value   Value
	Reasons []Reason
}

func absent(r Reason) Result { return Result{Reasons: []Reason{r}} }

// Span holds the two times that limit windows.
type Span struct {
	AsOf schemas.Micros // end of the windows
	Now  schemas.Micros // the kept actions start 96 hours before it
}

// Kept is how long actions are kept, and the longest window of a feature.
const Kept = 96 * time.Hour

// millis is a time in milliseconds since 1970-01-01 UTC, the resolution of windows.
type millis int64

func floor(m schemas.Micros) millis { return millis(floorDiv(m, 1000)) }

// floorDiv returns the quotient, rounded down. The divisor is positive.
func floorDiv[T ~int64](dividend, divisor T) T {
	if dividend%divisor < 0 {
		return dividend/divisor - 1
	}
	return dividend / divisor
}

func (m millis) time() time.Time { return time.UnixMilli(int64(m)).UTC() }

func durationMillis(d time.Duration) millis { return millis(d / time.Millisecond) }

// keptAfter returns the last time whose actions have expired.
func keptAfter(now schemas.Micros) millis { return floor(now) - durationMillis(Kept) }

// stretch is a time range of actions: after < time <= upTo.
type stretch struct {
	after, upTo millis
	cut         bool // the window starts before the kept actions
}

func (s stretch) holds(t millis) bool { return s.after < t && t <= s.upTo }

// stretch returns the kept part of the window.
func (s Span) stretch(window time.Duration) stretch {
	asOf, kept := floor(s.AsOf), keptAfter(s.Now)
	after := asOf - durationMillis(window)
	return stretch{after: max(after, kept), upTo: asOf, cut: after < kept}
}

// number parses decimal notation, with or without an exponent. It rejects names, hexadecimal digits, spaces and values
// beyond the range of a float64.
func number(s string) (float64, bool) {
	if s == "" || strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil
}

func finite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }
