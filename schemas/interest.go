package schemas

// InterestMarks are the terms of pins and the events on them, for the terms, users and interests of one partition, and deleted
// users, whose impressions are in all partitions. Topic interest-marks, produced to that partition explicitly.
type InterestMarks struct {
	Terms  []TermMark       `avro:"terms" json:"terms,omitempty"`
	Likes  []LikeMark       `avro:"likes" json:"likes,omitempty"`
	Events []EngagementMark `avro:"events" json:"events,omitempty"`

	Deleted []DeletedUser `avro:"deleted" json:"deleted,omitempty"`
}

// TermMark reports that a pin has a term in its title or its board's name, or no longer has it.
type TermMark struct {
	Term    string `avro:"term" json:"term"`
	Author  UserID `avro:"author" json:"author"`
	Time    Micros `avro:"time" json:"time"` // creation time of the pin
	Removed bool   `avro:"removed" json:"removed,omitempty"`
}

// LikeMark reports that a user acted on a pin of an interest. Marks without an interest, by earlier programs, are ignored.
type LikeMark struct {
	User     UserID     `avro:"user" json:"user"`
	Interest InterestID `avro:"interest" json:"interest,omitempty"`
	Pin      PinID      `avro:"pin" json:"pin"`
	Verb     Verb       `avro:"verb" json:"verb,omitempty"`
	Weight   float64    `avro:"weight" json:"weight,omitempty"` // weight of the verb, > 0
	Time     Micros     `avro:"time" json:"time"`
}

// EngagementMark reports an impression of a pin of an interest, or an action on it.
type EngagementMark struct {
	Interest InterestID `avro:"interest" json:"interest"`
	Source   Source     `avro:"source" json:"source"`
	What     string     `avro:"what" json:"what"` // a verb, or ImpressionCount
	Time     Micros     `avro:"time" json:"time"`
}

// Validate returns a *BadRecordError for marks that this project's programs never write.
func (m *InterestMarks) Validate() error {
	for _, t := range m.Terms {
		if t.Term == "" || t.Author == "" {
			return badf("interest marks: term %.64q of %.64q", t.Term, t.Author)
		}
	}
	for _, l := range m.Likes {
		if l.User == "" || l.Pin == "" || l.Interest != "" && !positive(l.Weight) {
			return badf("interest marks: %.64q likes %.64q with weight %v", l.User, l.Pin, l.Weight)
		}
	}
	for _, e := range m.Events {
		if e.Interest == "" || e.Source == "" || e.What == "" {
			return badf("interest marks: %.64q of %.64q from %.64q", e.What, e.Interest, e.Source)
		}
	}
	for _, d := range m.Deleted {
		if d.User == "" {
			return Bad("interest marks: deleted user without an id")
		}
	}
	return nil
}

// TermState is the state of a term.
type TermState string

// The states of a term.
const (
	TermCandidate TermState = "candidate" // undecided, or the decision was withdrawn
	TermAccepted  TermState = "accepted"  // it means an interest
	TermRejected  TermState = "rejected"  // it means no interest
	TermMerged    TermState = "merged"    // it means the interest of another term
	TermBlocked   TermState = "blocked"   // blocked by the configuration: it is not counted, and means no interest
)

// InterestDecision is an operator's decision about a term; the newest record counts. Topic interest-decisions, key: Term.
type InterestDecision struct {
	Term     string     `avro:"term" json:"term"`
	State    TermState  `avro:"state" json:"state"` // any but TermBlocked
	Interest InterestID `avro:"interest" json:"interest,omitempty"`
	Into     string     `avro:"into" json:"into,omitempty"`
	Reason   string     `avro:"reason" json:"reason,omitempty"`
	Operator string     `avro:"operator" json:"operator,omitempty"` // "": unknown
	Time     Micros     `avro:"time" json:"time"`
}

// DictionaryTerm is a term in an API response.
type DictionaryTerm struct {
	Term   string    `json:"term"`
	State  TermState `json:"state"`
	Score  float64   `json:"score"`  // ranks candidates
	Pins   int64     `json:"pins"`   // minimum number of pins that have it
	People int64     `json:"people"` // minimum number of their authors
	Recent float64   `json:"recent"` // recent part of its pins, 0 to 1

	Interest InterestID `json:"interest,omitempty"` // for an accepted term
	Into     string     `json:"into,omitempty"`     // for a merged term
	Reason   string     `json:"reason,omitempty"`
	Operator string     `json:"operator,omitempty"`
	Decided  *Timestamp `json:"decided"` // time of the decision; nil: none
}

// UserInterest is an interest of a user, with the actions that it was inferred from.
type UserInterest struct {
	Interest InterestID     `json:"interest"`
	Strength float64        `json:"strength"` // sum of the actions' weights, decayed to now
	Share    float64        `json:"share"`    // part in the strength of all the user's interests, 0 to 1
	Evidence List[Evidence] `json:"evidence"` // newest actions, newest first
}

// Evidence is an action that an interest was inferred from.
type Evidence struct {
	Pin    PinID     `json:"pin"`
	Verb   Verb      `json:"verb"`
	Weight float64   `json:"weight"`
	Time   Timestamp `json:"time"`
}

// SourceEngagement is the engagement with an interest's pins from one source.
type SourceEngagement struct {
	Source Source           `json:"source"`
	Counts map[string]int64 `json:"counts"` // by verb; impressions under ImpressionCount
}

// DirectSource is the source of actions on pins without a recent impression.
const DirectSource Source = "direct"
