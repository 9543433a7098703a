package schemas

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Validate checks every field of an event against its bounds; arrival is the record's timestamp, and verbs are the allowed
// verbs of actions. It returns nil, or one *BadRecordError that lists all problems. An action without an actor is valid;
// see Event.Anonymous.
func Validate(e Input, arrival Micros, verbs Verbs) error {
	c := checker{arrival: arrival, verbs: verbs}
	e.visit(&c)
	return c.err()
}

// ValidateRecord is Validate for the event of a record. It also returns a *BadRecordError if the record's key is not the
// event's.
func ValidateRecord(e Input, key string, arrival Micros, verbs Verbs) error {
	if want := e.Key(); key != want {
		return badf("key %s: want the record's %s", quote(key), quote(want))
	}
	return Validate(e, arrival, verbs)
}

// checker validates the fields of an event.
type checker struct {
	problems
	arrival Micros
	verbs   Verbs
}

func (c *checker) text(name string, value *string, b textBounds) {
	if *value == "" && (b.rule == optional || b.rule == nullable) {
		return
	}
	switch {
	case b.equals != "":
		if *value != b.equals {
			c.notef(name, "%s is not %s, the object", quote(*value), quote(b.equals))
		}
	case b.kinds != "":
		c.note(name, parseKind(*value, b.kinds))
	case b.actionVerb:
		if _, known := c.verbs[Verb(*value)]; !known {
			c.unknown(name, *value, fmt.Sprint(slices.Sorted(maps.Keys(c.verbs))))
		}
	case b.values != "":
		if !contains(b.values, *value) {
			c.unknown(name, *value, fmt.Sprint(strings.Split(b.values, "|")))
		}
	case b.check != nil:
		c.note(name, b.check(*value))
	case b.multiline:
		c.note(name, checkMultiline(*value, b.maxBytes))
	default:
		c.note(name, checkText(*value, b.maxBytes))
	}
}

func (c *checker) unknown(name, value, known string) {
	c.notef(name, "unknown %s %s; known are %s", name, quote(value), known)
}

func (c *checker) time(name string, value *Micros) { c.notAhead(name, *value, c.arrival) }

func (c *checker) number(name string, value *float64) {
	if math.IsNaN(*value) || math.IsInf(*value, 0) {
		c.note(name, errors.New("not a finite number"))
	}
}

func (c *checker) ids(name string, list idList, b idBounds) {
	if b.rule == required && list.len() == 0 {
		c.note(name, errors.New("empty"))
	}
	c.count(name, list.len(), b.most)
	for i := range min(list.len(), b.most) {
		if err := parseKind(list.at(i), b.kind); err != nil {
			c.note(fmt.Sprintf("%s[%d]", name, i), err)
		}
	}
}

// attributes checks names in sorted order, so that the problems of an event are always the same.
func (c *checker) attributes(name string, value *map[string]string) {
	c.count(name, len(*value), MaxAttributes)
	if len(*value) > MaxAttributes {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(*value)) {
		if err := checkText(key, MaxAttributeName); err != nil {
			c.note(name+": name "+quote(key), err)
		}
		c.note(name+": "+quote(key), checkMultiline((*value)[key], MaxAttributeBytes))
	}
}

func (c *checker) embedding(name string, value *[]float32) {
	c.count(name, len(*value), MaxEmbedding)
	for i, x := range *value {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			c.notef(name, "number %d is not finite", i)
			return
		}
	}
}

func (c *checker) candidates(name string, list *[]Candidate) {
	c.count(name, len(*list), MaxCandidates)
	for i := range min(len(*list), MaxCandidates) {
		if err := (*list)[i].Validate(c.arrival); err != nil {
			c.note(fmt.Sprintf("%s[%d]", name, i), err)
		}
	}
}
