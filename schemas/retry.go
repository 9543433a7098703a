package schemas

import (
	"fmt"
	"math"
	"strings"
)

// RetryOrder is what somebody decided about the retries of a topic's dead letters. Topic retry-orders, key: Topic.
type RetryOrder struct {
	Topic    string       `avro:"topic" json:"topic"`
	Operator string       `avro:"operator" json:"operator,omitempty"` // who decided; "": it is not known
	Time     Micros       `avro:"time" json:"time"`
	Limits   []RetryLimit `avro:"limits" json:"limits,omitempty"`
	Letters  []DeadLetter `avro:"letters" json:"letters,omitempty"` // to be retried at once, whatever was tried before
}

// RetryLimit says how fast dead letters of some kinds are retried.
type RetryLimit struct {
	Scope    string  `avro:"scope" json:"scope"`       // a kind, a topic/group, or a topic: the narrowest that fits counts
	Rate     float64 `avro:"rate" json:"rate"`         // retries a second of each kind, at most MaxRetryRate; 0: none; below 0: as configured
	Priority int32   `avro:"priority" json:"priority"` // of kinds that are due at once, the greater goes first; 0 by default
}

// MaxRetryRate is the highest rate of a RetryLimit.
const MaxRetryRate = 10_000

// Validate reports what no command of this project would have written.
func (o *RetryOrder) Validate(key string) error {
	if key != o.Topic || o.Topic == "" {
		return Bad(fmt.Sprintf("retry order: key %.64q: want the topic %.64q", key, o.Topic))
	}
	for _, l := range o.Limits {
		if topic, _, _ := strings.Cut(l.Scope, "/"); topic != o.Topic {
			return Bad(fmt.Sprintf("retry order: scope %.128q is none of topic %.64q", l.Scope, o.Topic))
		}
		if math.IsNaN(l.Rate) || l.Rate > MaxRetryRate {
			return Bad(fmt.Sprintf("retry order: rate %v of %.128q: at most %d", l.Rate, l.Scope, MaxRetryRate))
		}
	}
	for i := range o.Letters {
		if o.Letters[i].Topic != o.Topic {
			return Bad(fmt.Sprintf("retry order: a letter of topic %.64q in an order for %.64q", o.Letters[i].Topic, o.Topic))
		}
	}
	return nil
}

// RetryState is how far a dead letter's retries are.
type RetryState string

// The states of a dead letter.
const (
	RetryWaiting RetryState = "waiting" // to be retried when it is due
	RetrySent    RetryState = "sent"    // retried, and not yet back
	RetryDone    RetryState = "done"    // retried, and did not come back
	RetryParked  RetryState = "parked"  // not retried any more, unless by hand
)

// RetryStates are all states, in the order in which a letter goes through them.
func RetryStates() []RetryState { return []RetryState{RetryWaiting, RetrySent, RetryDone, RetryParked} }

// RetryKind is how the dead letters of one kind stand.
type RetryKind struct {
	Kind     string               `json:"kind"` // topic/group/words of the reason
	Topic    string               `json:"topic"`
	Group    string               `json:"group"`
	Reason   string               `json:"reason"` // of the newest letter, cut
	Rate     float64              `json:"rate"`   // in force, retries a second; 0: stopped
	Priority int32                `json:"priority"`
	Operator string               `json:"operator,omitempty"` // who set rate and priority; "": they are as configured
	States   map[RetryState]int64 `json:"states"`             // letters by state, all states present
	Due      Micros               `json:"due,omitempty"`      // of the letter that is retried next, 0: none waits
}

// RetriedLetter is one dead letter and how far its retries are.
type RetriedLetter struct {
	Kind      string     `json:"kind"`
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"` // of the record that failed first, as Offset is
	Offset    int64      `json:"offset"`
	Group     string     `json:"group"`
	Reason    string     `json:"reason"` // of the last failure, cut
	State     RetryState `json:"state"`
	Attempts  int32      `json:"attempts"`      // retries so far
	Why       string     `json:"why,omitempty"` // why it is parked
	Since     Micros     `json:"since"`         // when it came into its state
	Due       Micros     `json:"due,omitempty"` // when it is retried, if it waits; 0: never
}
