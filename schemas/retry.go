package schemas

import (
	"math"
	"strings"
)

// RetryOrder is an operator's decision about the retries of a topic's dead letters. Topic retry-orders, key: Topic.
type RetryOrder struct {
	Topic       string       `avro:"topic" json:"topic"`
	Operator    string       `avro:"operator" json:"operator,omitempty"` // who decided; "": unknown
	Time        Micros       `avro:"time" json:"time"`
	Limits      []RetryLimit `avro:"limits" json:"limits,omitempty"`
	DeadLetters []DeadLetter `avro:"dead_letters" json:"dead_letters,omitempty"` // dead letters to retry immediately, regardless of earlier attempts
}

// RetryLimit limits the rate of retries of some kinds of dead letters.
type RetryLimit struct {
	Scope    string  `avro:"scope" json:"scope"`       // a kind, a topic/group, or a topic: the narrowest match applies
	Rate     float64 `avro:"rate" json:"rate"`         // per second and kind, at most MaxRetryRate; 0: none; below 0: as configured
	Priority int32   `avro:"priority" json:"priority"` // among kinds that are due at once, the highest goes first; 0 by default
}

// MaxRetryRate is the maximum rate of a RetryLimit, in retries per second.
const MaxRetryRate = 10_000

// Validate returns a *BadRecordError for an order that this project's commands never write.
func (o *RetryOrder) Validate(key string) error {
	if key != o.Topic || o.Topic == "" {
		return badf("retry order: key %.64q: want the topic %.64q", key, o.Topic)
	}
	for _, l := range o.Limits {
		if topic, _, _ := strings.Cut(l.Scope, "/"); topic != o.Topic {
			return badf("retry order: scope %.128q is not of topic %.64q", l.Scope, o.Topic)
		}
		if math.IsNaN(l.Rate) || l.Rate > MaxRetryRate {
			return badf("retry order: rate %v of %.128q: at most %d", l.Rate, l.Scope, MaxRetryRate)
		}
	}
	for i := range o.DeadLetters {
		if o.DeadLetters[i].Topic != o.Topic {
			return badf("retry order: a dead letter of topic %.64q in an order for %.64q", o.DeadLetters[i].Topic, o.Topic)
		}
	}
	return nil
}

// RetryState is the state of a dead letter's retries.
type RetryState string

// The states of a dead letter.
const (
	RetryWaiting RetryState = "waiting" // waits until its retry is due
	RetrySent    RetryState = "sent"    // retried, outcome unknown
	RetryDone    RetryState = "done"    // retried and did not fail again
	RetryParked  RetryState = "parked"  // no longer retried automatically
)

// RetryStates returns all states, in the order of their transitions.
func RetryStates() []RetryState { return []RetryState{RetryWaiting, RetrySent, RetryDone, RetryParked} }

// RetryKind is the retry status of one kind of dead letters.
type RetryKind struct {
	Kind     string               `json:"kind"` // topic/group/words of the reason
	Topic    string               `json:"topic"`
	Group    string               `json:"group"`
	Reason   string               `json:"reason"` // of the newest dead letter, truncated
	Rate     float64              `json:"rate"`   // effective rate, retries per second; 0: stopped
	Priority int32                `json:"priority"`
	Operator string               `json:"operator,omitempty"` // operator who set rate and priority; "": as configured
	States   map[RetryState]int64 `json:"states"`             // dead letters by state, with all states present
	Next     *Timestamp           `json:"next"`               // time of the next retry; nil: no dead letter is waiting
}

// RetriedDeadLetter is one dead letter and the status of its retries.
type RetriedDeadLetter struct {
	Kind      string     `json:"kind"`
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"` // of the record that failed first, like Offset
	Offset    int64      `json:"offset"`
	Group     string     `json:"group"`
	Reason    string     `json:"reason"` // of the last failure, truncated
	State     RetryState `json:"state"`
	Attempts  int32      `json:"attempts"`      // retries so far
	Why       string     `json:"why,omitempty"` // why it is parked
	Since     Timestamp  `json:"since"`         // time of the last state change
	Due       *Timestamp `json:"due"`           // time of the next retry; nil: none
}
