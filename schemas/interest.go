package schemas

import "fmt"

// InterestMarks are what pins say, and what became of them, for the terms, users and interests of one partition. Topic
// interest-marks, produced to that partition explicitly.
type InterestMarks struct {
	Terms  []TermMark       `avro:"terms" json:"terms,omitempty"`
	Likes  []LikeMark       `avro:"likes" json:"likes,omitempty"`
	Events []EngagementMark `avro:"events" json:"events,omitempty"`
}

// TermMark says that a pin has a term in its title or its board's name, or has it no more.
type TermMark struct {
	Term   string `avro:"term" json:"term"`
	Author UserID `avro:"author" json:"author"`
	Time   Micros `avro:"time" json:"time"` // of the pin's creation
	Gone   bool   `avro:"gone" json:"gone,omitempty"`
}

// LikeMark says that a user acted on a pin of an interest. Without an interest it says that the pin is gone.
type LikeMark struct {
	User     UserID     `avro:"user" json:"user"`
	Interest InterestID `avro:"interest" json:"interest,omitempty"`
	Pin      PinID      `avro:"pin" json:"pin"`
	Verb     Verb       `avro:"verb" json:"verb,omitempty"`
	Weight   float64    `avro:"weight" json:"weight,omitempty"` // of the verb, > 0
	Time     Micros     `avro:"time" json:"time"`
}

// EngagementMark says that something happened to a pin of an interest.
type EngagementMark struct {
	Interest InterestID `avro:"interest" json:"interest"`
	Source   Source     `avro:"source" json:"source"`
	What     string     `avro:"what" json:"what"` // a verb, or ImpressionCount
	Time     Micros     `avro:"time" json:"time"`
}

// Validate reports what no program of this project would have written.
func (m *InterestMarks) Validate() error {
	for _, t := range m.Terms {
		if t.Term == "" || t.Author == "" {
			return Bad(fmt.Sprintf("interest marks: term %.64q of %.64q", t.Term, t.Author))
		}
	}
	for _, l := range m.Likes {
		if l.User == "" || l.Pin == "" || l.Interest != "" && !positive(l.Weight) {
			return Bad(fmt.Sprintf("interest marks: %.64q likes %.64q with weight %v", l.User, l.Pin, l.Weight))
		}
	}
	for _, e := range m.Events {
		if e.Interest == "" || e.Source == "" || e.What == "" {
			return Bad(fmt.Sprintf("interest marks: %.64q of %.64q from %.64q", e.What, e.Interest, e.Source))
		}
	}
	return nil
}

// TermState is what was decided about a term.
type TermState string

// The states of a term.
const (
	TermCandidate TermState = "candidate" // nothing was decided, or it was taken back
	TermAccepted  TermState = "accepted"  // it means an interest
	TermRejected  TermState = "rejected"  // it means none
	TermMerged    TermState = "merged"    // it means what another term means
	TermBlocked   TermState = "blocked"   // by the configuration: it is not counted, and means none
)

// InterestDecision is what an operator decided about a term; the newest record counts. Topic interest-decisions, key:
// Term.
type InterestDecision struct {
	Term     string     `avro:"term" json:"term"`
	State    TermState  `avro:"state" json:"state"` // any but TermBlocked
	Interest InterestID `avro:"interest" json:"interest,omitempty"`
	Into     string     `avro:"into" json:"into,omitempty"`
	Reason   string     `avro:"reason" json:"reason,omitempty"`
	Operator string     `avro:"operator" json:"operator,omitempty"` // "": it is not known
	Time     Micros     `avro:"time" json:"time"`
}

// DictionaryTerm is a term as readers see it.
type DictionaryTerm struct {
	Term   string    `json:"term"`
	State  TermState `json:"state"`
	Score  float64   `json:"score"`  // by which candidates are ranked
	Pins   int64     `json:"pins"`   // that have it, at least
	People int64     `json:"people"` // who published these, at least
	Recent float64   `json:"recent"` // the part of its pins that is recent, 0 to 1

	Interest InterestID `json:"interest,omitempty"` // of an accepted term
	Into     string     `json:"into,omitempty"`     // of a merged one
	Reason   string     `json:"reason,omitempty"`
	Operator string     `json:"operator,omitempty"`
	Decided  Micros     `json:"decided,omitempty"` // when; 0: never
}

// UserInterest is an interest of a user, with what it was inferred from.
type UserInterest struct {
	Interest InterestID `json:"interest"`
	Strength float64    `json:"strength"` // the sum of the actions' weights, decayed to now
	Share    float64    `json:"share"`    // in that of all the user's interests, 0 to 1
	Evidence []Evidence `json:"evidence"` // the newest actions, the newest first
}

// Evidence is an action that an interest was inferred from.
type Evidence struct {
	Pin    PinID   `json:"pin"`
	Verb   Verb    `json:"verb"`
	Weight float64 `json:"weight"`
	Time   Micros  `json:"time"`
}

// SourceEngagement is what became of an interest's pins that came from one source.
type SourceEngagement struct {
	Source Source           `json:"source"`
	Counts map[string]int64 `json:"counts"` // by verb, and impressions under ImpressionCount
}

// DirectSource stands for actions on pins that no impression of late explains.
const DirectSource Source = "direct"
