package schemas

import "strings"

// fieldVisitor is called for each field of an input event. object reads the fields from JSON, checker validates them,
// jsonSchema documents them, and deduplicator removes repeated ids.
type fieldVisitor interface {
	text(name string, value *string, bounds textBounds)
	time(name string, value *Micros)
	number(name string, value *float64)
	ids(name string, list idList, r rule, kind string, most int)
	attributes(name string, value *map[string]string)
	embedding(name string, value *[]float32)
	records(name string, list recordList, most int)
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

// idList is a list of typed ids.
type idList interface {
	len() int
	at(i int) string
	set(ids []string)
	deduplicate()
}

// idsOf implements idList.
type idsOf[T ~string] []T

func (l *idsOf[T]) len() int        { return len(*l) }
func (l *idsOf[T]) at(i int) string { return string((*l)[i]) }

func (l *idsOf[T]) deduplicate() { *l = distinct(*l) }

// set replaces the list by ids without repeats.
func (l *idsOf[T]) set(ids []string) {
	list := make([]T, len(ids))
	for i, id := range ids {
		list[i] = T(id)
	}
	*l = distinct(list)
}

// recordList is a list of records.
type recordList interface {
	len() int
	reset(n int) // makes n zero records
	visit(i int, v fieldVisitor)
	recordName() string // in the Avro schema
}

// candidateList implements recordList.
type candidateList []Candidate

func (l *candidateList) len() int                    { return len(*l) }
func (l *candidateList) reset(n int)                 { *l = make([]Candidate, n) }
func (l *candidateList) visit(i int, v fieldVisitor) { (*l)[i].visit(v) }
func (l *candidateList) recordName() string          { return "Candidate" }
