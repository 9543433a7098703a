package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/smartfeed/smartfeed/topics"
)

// DeadLetters are the records that could not be worked off.
type DeadLetters interface {
	// List returns the newest ones, the newest last.
	List(ctx context.Context, limit int) ([]topics.Letter, error)
	// Retry publishes what has not been retried yet to the topics it came from.
	Retry(ctx context.Context) (topics.Retried, error)
}

const maxLetters = 1000

// letter is a dead letter as callers see it.
type letter struct {
	LetterPartition int32     `json:"letter_partition"` // where it lies
	LetterOffset    int64     `json:"letter_offset"`
	Retried         bool      `json:"retried"`
	Topic           string    `json:"topic"` // where it came from
	Partition       int32     `json:"partition"`
	Offset          int64     `json:"offset"`
	Group           string    `json:"group"` // who could not work it off
	Reason          string    `json:"reason"`
	Time            time.Time `json:"time"`  // arrival of the record
	Key             []byte    `json:"key"`   // in base64, as the value is
	Value           []byte    `json:"value"` // nil: it is too long to be listed
}

// letterOf has the reason why a letter cannot be read instead of the one that is in it.
func letterOf(l *topics.Letter) letter {
	reason := l.Reason
	if l.Unreadable != "" {
		reason = "the letter cannot be read: " + l.Unreadable
	}
	return letter{
		LetterPartition: l.Partition, LetterOffset: l.Offset, Retried: l.Retried,
		Topic: l.Topic, Partition: l.DeadLetter.Partition, Offset: l.DeadLetter.Offset, Group: l.Group,
		Reason: reason, Time: writable(l.Time.Time()), Key: l.Key, Value: l.Value,
	}
}

func (s *Server) deadLetters(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	limit := p.limit(defaultLimit, maxLetters)
	if err := p.err(); err != nil {
		return err
	}
	found, err := s.deps.DeadLetters.List(r.Context(), limit)
	if err != nil {
		return fmt.Errorf("%w (%w)", unavailable("the dead letters cannot be read at the moment"), err)
	}
	list := make([]letter, len(found))
	for i := range found {
		list[i] = letterOf(&found[i])
	}
	return listOf(w, "letters", list, nil)
}

// retryDeadLetters answers when all that was retried is acknowledged. What is interrupted may be published again by the
// next retry.
func (s *Server) retryDeadLetters(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	done, err := s.deps.DeadLetters.Retry(r.Context())
	if err != nil {
		return fmt.Errorf("%w (%w)", unavailable("the dead letters were not retried whole: retry again"), err)
	}
	return writeJSON(w, http.StatusOK, done)
}
