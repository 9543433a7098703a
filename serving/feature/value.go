package feature

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Value is what a feature has for one entity: a Number, Groups, Last, Top or a Vector; nil is null. In JSON it is the
// bare number, object or array.
type Value interface{ isValue() }

// Number is the value of an aggregate without grouping: finite.
type Number float64

// Groups are the finite numbers of an aggregate with a grouping, by group; never nil. Groups without any action are
// not there.
type Groups map[string]float64

// Last are the newest actions, newest first; never nil.
type Last []Acted

// Acted is one action of Last.
type Acted struct {
	Object    schemas.ID   `json:"object"`
	Verb      schemas.Verb `json:"verb"`
	Timestamp time.Time    `json:"timestamp"` // UTC, floored to milliseconds
}

// Top are the most frequent values, most frequent first, ties by value ascending; never nil.
type Top []Counted

// Counted is one value of Top with the number of actions that have it.
type Counted struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// Vector is the element-wise mean of embeddings: at least one finite element.
type Vector []float64

func (Number) isValue() {}
func (Groups) isValue() {}
func (Last) isValue()   {}
func (Top) isValue()    {}
func (Vector) isValue() {}

// Reason is why a feature is named in missing.
type Reason string

// The reasons. With Window and Cap there is a value all the same, of the part that was looked at; with Overflow there
// may be one, of the other groups; with every other reason the value is null.
const (
	Empty     Reason = "empty"     // nothing to take a mean, minimum, maximum or cosine of, or to divide by
	Window    Reason = "window"    // the window reaches back further than what is kept
	Cap       Reason = "cap"       // more actions or groups than Config allows, or bytes of a remote store: the newest were looked at
	Overflow  Reason = "overflow"  // beyond the range of a float64
	Unknown   Reason = "pin"       // of a pair: nothing is known of the pin, or it was deleted
	Attribute Reason = "attribute" // of a pair: the pin has no such attribute, or no embedding of the user's length
	Erased    Reason = "deleted"   // the user was deleted
	Deadline  Reason = "deadline"  // not evaluated in time
	Failed    Reason = "store"     // the store could not be read
)

// Result is a feature of one entity: its value, and why it or a part of it is missing, each reason once.
type Result struct {
	Value   Value
	Reasons []Reason
}

func absent(r Reason) Result { return Result{Reasons: []Reason{r}} }

// Span is the two moments by which windows are cut.
type Span struct {
	AsOf schemas.Micros // where windows end
	Now  schemas.Micros // 96 hours before it is where the kept actions begin
}

// Kept is how long actions are kept, and the longest window of a feature.
const Kept = 96 * time.Hour

// millis is a moment in milliseconds since 1970-01-01 UTC, the resolution of windows.
type millis int64

func floor(m schemas.Micros) millis {
	ms := m / 1000
	if m%1000 < 0 {
		ms--
	}
	return millis(ms)
}

func (m millis) time() time.Time { return time.UnixMilli(int64(m)).UTC() }

func durationMillis(d time.Duration) millis { return millis(d / time.Millisecond) }

// keptAfter returns the last moment of which actions are not kept any more.
func keptAfter(now schemas.Micros) millis { return floor(now) - durationMillis(Kept) }

// stretch is the actions to look at: after < time <= upTo.
type stretch struct {
	after, upTo millis
	cut         bool // the window begins before what is kept
}

func (s stretch) holds(t millis) bool { return s.after < t && t <= s.upTo }

// stretch returns the kept part of the window.
func (s Span) stretch(window time.Duration) stretch {
	asOf, kept := floor(s.AsOf), keptAfter(s.Now)
	after := asOf - durationMillis(window)
	return stretch{after: max(after, kept), upTo: asOf, cut: after < kept}
}

// number reads decimal notation, with or without an exponent. Names, hexadecimal digits, spaces and what is beyond the
// range of a float64 are no numbers.
func number(s string) (float64, bool) {
	if s == "" || strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil
}

func finite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }
