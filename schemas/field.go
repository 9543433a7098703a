package schemas

import "strings"

// fieldVisitor is called for each field of an input event. object reads the fields from JSON, checker validates them, and
// jsonSchema documents them.
type fieldVisitor interface {
	text(name string, value *string, bounds textBounds)
	time(name string, value *Micros)
	number(name string, value *float64)
	interests(name string, list *[]InterestID)
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
	reserved   string                   // values that are not allowed, for the documentation of check
	check      func(value string) error // another check; nil: none
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
