package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics/operate"
)

// DeadLetters are the records that could not be worked off.
type DeadLetters interface {
	// List returns the newest ones, the newest last.
	List(ctx context.Context, limit int) ([]operate.Letter, error)
	// Retry has what came since the last call retried at once.
	Retry(ctx context.Context, operator string) (operate.Retried, error)
	// Kinds returns how all kinds stand, by name.
	Kinds(ctx context.Context) ([]schemas.RetryKind, error)
	// Retries returns letters of a kind in a state ("": of all), at most limit, who came into it last first.
	Retries(ctx context.Context, kind string, state schemas.RetryState, limit int) ([]schemas.RetriedLetter, error)
	// Limit sets how fast letters of a scope are retried. What is wrong with it is a *schemas.BadRecordError.
	Limit(ctx context.Context, limit schemas.RetryLimit, operator string) error
}

const maxLetters = 1000

// letter is a dead letter as callers see it.
type letter struct {
	LetterPartition int32     `json:"letter_partition"` // where it lies
	LetterOffset    int64     `json:"letter_offset"`
	Retried         bool      `json:"retried"` // it came before the last call of Retry
	Attempts        int32     `json:"attempts"`
	FirstPartition  int32     `json:"first_partition"` // of the record that failed first, of which this is a retry
	FirstOffset     int64     `json:"first_offset"`
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
func letterOf(l *operate.Letter) letter {
	reason := l.Reason
	if l.Unreadable != "" {
		reason = "the letter cannot be read: " + l.Unreadable
	}
	partition, offset := l.First()
	return letter{
		LetterPartition: l.Partition, LetterOffset: l.Offset, Retried: l.Retried,
		Attempts: l.Attempts, FirstPartition: partition, FirstOffset: offset,
		Topic: l.Topic, Partition: l.DeadLetter.Partition, Offset: l.DeadLetter.Offset, Group: l.Group,
		Reason: reason, Time: l.Time.Writable().Time(), Key: l.Key, Value: l.Value,
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

// retryKind is a schemas.RetryKind as callers see it.
type retryKind struct {
	schemas.RetryKind
	Next *time.Time `json:"next"` // when one is retried next; nil: none waits
}

// retriedLetter is a schemas.RetriedLetter as callers see it.
type retriedLetter struct {
	schemas.RetriedLetter
	Since time.Time  `json:"since"` // when it came into its state
	Due   *time.Time `json:"due"`   // when it is retried; nil: it is not
}

// timeOf returns nil for no time.
func timeOf(at schemas.Micros) *time.Time {
	if at == 0 {
		return nil
	}
	t := at.Writable().Time()
	return &t
}

func (s *Server) retryKinds(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	found, err := s.deps.DeadLetters.Kinds(r.Context())
	if err != nil {
		return fmt.Errorf("%w (%w)", unavailable("how the retries stand cannot be read at the moment"), err)
	}
	list := make([]retryKind, len(found))
	for i, k := range found {
		list[i] = retryKind{k, timeOf(k.Due)}
		list[i].Due = 0 // it is in Next
	}
	return listOf(w, "kinds", list, nil)
}

func (s *Server) retriedLetters(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	kind, state, limit := p.text("kind"), schemas.RetryState(p.text("state")), p.limit(defaultLimit, maxLetters)
	if state != "" && !slices.Contains(schemas.RetryStates(), state) {
		p.wrong("state " + quote(string(state)) + " is none of waiting, sent, done and parked")
	}
	if len(kind) > maxKindBytes || strings.ContainsRune(kind, 0) || kind != "" && strings.Count(kind, "/") != 2 {
		p.wrong("kind " + quote(kind) + " is no topic/group/words")
	}
	if err := p.err(); err != nil {
		return err
	}
	found, err := s.deps.DeadLetters.Retries(r.Context(), kind, state, limit)
	if err != nil {
		return fmt.Errorf("%w (%w)", unavailable("how the retries stand cannot be read at the moment"), err)
	}
	list := make([]retriedLetter, len(found))
	for i, l := range found {
		list[i] = retriedLetter{l, l.Since.Writable().Time(), timeOf(l.Due)}
	}
	return listOf(w, "letters", list, nil)
}

// maxKindBytes is above any kind's name.
const maxKindBytes = 512

// limitRequest is the body of POST /v1/deadletters/limits.
type limitRequest struct {
	Kind     string   `json:"kind"`
	Rate     *float64 `json:"rate"` // nil: as configured
	Priority int32    `json:"priority"`
	Operator string   `json:"operator"`
}

// limited is its answer.
type limited struct {
	Kind     string   `json:"kind"`
	Rate     *float64 `json:"rate"`
	Priority int32    `json:"priority"`
}

// limitRetries answers when the limit is acknowledged; it is in force a moment later.
func (s *Server) limitRetries(w http.ResponseWriter, r *http.Request) error {
	return answerJSON(s, w, r, func(ctx context.Context, req limitRequest) (limited, error) {
		limit := schemas.RetryLimit{Scope: req.Kind, Rate: -1, Priority: req.Priority}
		var problems []string
		if req.Rate != nil {
			limit.Rate = *req.Rate
		}
		if req.Rate != nil && (limit.Rate < 0 || limit.Rate > schemas.MaxRetryRate) {
			problems = append(problems, fmt.Sprintf("rate %v is no number from 0 to %d", limit.Rate, schemas.MaxRetryRate))
		}
		if req.Kind == "" || len(req.Kind) > maxKindBytes || len(req.Operator) > maxKindBytes {
			problems = append(problems, "kind is missing, or kind or operator is too long")
		}
		if len(problems) > 0 {
			return limited{}, listed(problems)
		}
		err := s.deps.DeadLetters.Limit(ctx, limit, operatorOf(ctx).or(req.Operator))
		operatorOf(ctx).change(slog.String("kind", limit.Scope), slog.Float64("rate", limit.Rate), slog.Int("priority", int(limit.Priority)))
		var bad *schemas.BadRecordError
		switch {
		case errors.As(err, &bad):
			return limited{}, listed([]string{bad.Reason})
		case err != nil:
			return limited{}, fmt.Errorf("%w (%w)", unavailable("the limit is not certain: set it again"), err)
		}
		return limited{req.Kind, req.Rate, req.Priority}, nil
	})
}

// retryDeadLetters answers when the retries are ordered. What is interrupted may be ordered again by the next call; what
// this process may not do itself, no further call of it mends.
func (s *Server) retryDeadLetters(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	by := operatorOf(r.Context())
	done, err := s.deps.DeadLetters.Retry(r.Context(), by.name)
	by.change(slog.Int("retried", done.Published), slog.Int("skipped", done.Skipped))
	var tooLong *operate.TooLongError
	if errors.As(err, &tooLong) {
		return fmt.Errorf("%w (%w)", problem(http.StatusInternalServerError, "%v", tooLong), err)
	}
	if err != nil {
		return fmt.Errorf("%w (%w)", unavailable("the dead letters were not retried whole: retry again"), err)
	}
	return writeJSON(w, http.StatusOK, done)
}
