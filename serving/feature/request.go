package feature

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Bounds of a request.
const (
	MaxFeatures = 100
	MaxEntities = 1000   // for users, pins and pairs each
	MaxAnswers  = 50_000 // values in one answer: entities times the features of their kind
	// MaxAnswerBytes limits the values of an answer and the results that they are computed from, by their approximate
	// length in JSON. Values beyond it are null, with the reason TooLarge.
	MaxAnswerBytes = 64 << 20
)

// Request asks for features of entities: each feature for all entities of its kind. Repeats are answered once.
type Request struct {
	Features    []string         `json:"features,omitempty"`     // names; with those of FeatureSets 1 to MaxFeatures
	FeatureSets []string         `json:"feature_sets,omitempty"` // names of sets whose features are added
	Users       []schemas.UserID `json:"users,omitempty"`
	Pins        []schemas.PinID  `json:"pins,omitempty"`
	Pairs       []UserPin        `json:"pairs,omitempty"`
	At          *time.Time       `json:"at,omitempty"` // end of the windows; nil: now. It does not affect features of pins
	Unrecorded  bool             `json:"-"`            // the training log gets no record of the answer
}

// UserPin is the entity of a feature of a pair. In JSON it is an array of the two ids.
type UserPin struct {
	User schemas.UserID
	Pin  schemas.PinID
}

// String returns the name of the pair in an answer: "user:…|pin:…".
func (p UserPin) String() string { return string(p.User) + "|" + string(p.Pin) }

// MarshalJSON writes [user, pin].
func (p UserPin) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]string{string(p.User), string(p.Pin)})
}

// UnmarshalJSON reads [user, pin] and nothing else. It does not check the ids.
func (p *UserPin) UnmarshalJSON(text []byte) error {
	var ids []string
	if err := json.Unmarshal(text, &ids); err != nil {
		return fmt.Errorf("read pair: %w", err)
	}
	if len(ids) != 2 {
		return fmt.Errorf("read pair: %d ids: want [user, pin]", len(ids))
	}
	p.User, p.Pin = schemas.UserID(ids[0]), schemas.PinID(ids[1])
	return nil
}

// Answer has the values of every requested entity, by entity name and feature name. An entity has the features of its
// kind.
type Answer struct {
	Values   map[string]map[string]Value `json:"values"`
	Missing  []Missing                   `json:"missing"`  // in the order of the request, never nil
	Degraded []string                    `json:"degraded"` // "deadline", "size", "store": why values that exist are missing; never nil
	AsOf     time.Time                   `json:"as_of"`    // UTC, floored to milliseconds
	// Fresh is the arrival time of the newest action that was in the store when the answer was started. It is null if
	// it is unknown, for example because no action has arrived since the start of the process. With Pinot it is the
	// arrival of the newest record in the least fresh partition among those that were read for the answer. It is then null
	// if Pinot does not report one of these partitions.
	Fresh *time.Time `json:"fresh"`
}

// Missing says that a feature of an entity, or a part of it, is not in the answer.
type Missing struct {
	Entity  string `json:"entity"`
	Feature string `json:"feature"`
	Reason  Reason `json:"reason"`
}

// RequestError is returned for an invalid request. It lists every problem.
type RequestError struct{ Problems []string }

// Error joins the problems in one line.
func (e *RequestError) Error() string { return "features request: " + strings.Join(e.Problems, "; ") }

// query is a validated request without repeats, with the features grouped by kind.
type query struct {
	users []schemas.UserID
	pins  []schemas.PinID
	pairs []UserPin
	*chosen
	span Span
}

// chosen holds the definitions for a list of names, grouped by kind. It is immutable.
type chosen struct {
	ofUser, ofPin, ofPair []Definition

	actions compiled // ofUser, then ofPair: all definitions over a user's actions, in one scan
	items   compiled // ofPin
}

// checked resolves a request against the definitions. The error is a *RequestError.
func (r Request) checked(defs *definitionSet, now schemas.Micros) (query, error) {
	c := &checker{}
	q := query{span: Span{AsOf: now, Now: now}}
	if r.At != nil {
		q.span.AsOf = schemas.MicrosOf(*r.At)
		if year := r.At.UTC().Year(); year < 0 || year > 9999 {
			c.problem("at: it is in the year %d by UTC: want 0 to 9999, which RFC 3339 can write", year)
		}
	}
	q.chosen = defs.choose(c, r.Features, r.FeatureSets)
	q.users = unique(c, "users", r.Users, isUser)
	q.pins = unique(c, "pins", r.Pins, isPin)
	q.pairs = unique(c, "pairs", r.Pairs, func(p UserPin) error { return cmp.Or(isUser(p.User), isPin(p.Pin)) })
	if len(q.users)+len(q.pins)+len(q.pairs) == 0 {
		c.problem("no users, pins or pairs")
	}
	if n := len(q.users)*len(q.ofUser) + len(q.pins)*len(q.ofPin) + len(q.pairs)*len(q.ofPair); n > MaxAnswers {
		c.problem("%d values: at most %d", n, MaxAnswers)
	}
	if len(c.problems) > 0 {
		return query{}, &RequestError{Problems: c.problems}
	}
	return q, nil
}

func isUser(u schemas.UserID) error { _, err := schemas.ParseUserID(string(u)); return err }

func isPin(p schemas.PinID) error { _, err := schemas.ParsePinID(string(p)); return err }

// maxProblems limits the problems that are reported for a request.
const maxProblems = 100

type checker struct{ problems []string }

func (c *checker) problem(format string, args ...any) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, fmt.Sprintf(format, args...))
	}
}

// unique checks a list of entities and drops repeats.
func unique[T comparable](c *checker, what string, list []T, check func(T) error) []T {
	if len(list) > MaxEntities {
		c.problem("%s: %d: at most %d", what, len(list), MaxEntities)
		return nil
	}
	seen := make(map[T]bool, len(list))
	out := make([]T, 0, len(list))
	for _, e := range list {
		if err := check(e); err != nil {
			c.problem("%s: %v", what, err)
		}
		if !seen[e] {
			seen[e] = true
			out = append(out, e)
		}
	}
	return out
}
