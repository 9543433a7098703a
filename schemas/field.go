package schemas

import (
	"strings"

	"github.com/smartfeed/smartfeed/internal/convert"
)

// fieldVisitor is called for each field of an input event. object reads the fields from JSON, and checker validates them. A
// test compares them with the OpenAPI document.
type fieldVisitor interface {
	text(name string, value *string, bounds textBounds)
	time(name string, value *Micros)
	number(name string, value *float64)
	ids(name string, list idList, bounds idBounds)
	attributes(name string, value *map[string]string)
	embedding(name string, value *[]float32)
	candidates(name string, list *[]Candidate)
}

// rule defines whether a field is required. In JSON, a field of any other rule may be absent.
type rule int

const (
	required rule = iota
	optional      // may be empty
	nullable      // may be empty, or null in JSON
	expected      // must not be empty, although JSON may omit it
)

// textBounds are the bounds of a text. Lists are separated by "|", so that a visit allocates nothing.
type textBounds struct {
	rule       rule
	kinds      string                   // the kinds of a typed id; "": not a typed id
	values     string                   // the allowed values; "": any
	actionVerb bool                     // the allowed values are the configured verbs of actions
	equals     string                   // the only allowed value; "": any
	maxBytes   int                      // of text without other bounds
	multiline  bool                     // control characters are allowed
	check      func(value string) error // another check; nil: none
}

// idBounds are the bounds of a list of ids.
type idBounds struct {
	rule rule
	kind string
	most int // ids
}

// idList is a list of ids of one type.
type idList interface {
	len() int
	at(i int) string
	set(ids []string) // removes repeats
}

// idsOf implements idList.
type idsOf[T ~string] []T

func (l *idsOf[T]) len() int        { return len(*l) }
func (l *idsOf[T]) at(i int) string { return string((*l)[i]) }

func (l *idsOf[T]) set(ids []string) {
	*l = distinct(convert.All(ids, func(id string) T { return T(id) }))
}

// visitInterests visits the interests of an event or a candidate.
func visitInterests(v fieldVisitor, list *[]InterestID) {
	v.ids("interests", (*idsOf[InterestID])(list), idBounds{optional, KindInterest, MaxInterests})
}

// contains reports whether a list separated by "|" contains a value.
func contains(list, value string) bool {
	for one := range strings.SplitSeq(list, "|") {
		if one == value {
			return true
		}
	}
	return false
}
