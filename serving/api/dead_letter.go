package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// DeadLetters manages the dead letters: the records that could not be processed.
type DeadLetters interface {
	// List returns the newest dead letters, newest last.
	List(ctx context.Context, limit int) ([]DeadLetter, error)
	// Retry retries the dead letters since its last call at once.
	Retry(ctx context.Context, operator string) (Retried, error)
	// Kinds returns the state of all kinds, by name.
	Kinds(ctx context.Context) ([]schemas.RetryKind, error)
	// Retries returns at most limit dead letters of a kind in a state ("": all), the most recent state change first.
	Retries(ctx context.Context, kind string, state schemas.RetryState, limit int) ([]schemas.RetriedDeadLetter, error)
	// Limit sets the rate at which dead letters of a scope are retried. It returns a *schemas.BadRecordError for an invalid
	// limit.
	Limit(ctx context.Context, limit schemas.RetryLimit, operator string) error
}

// DeadLetter is a dead letter with its position in the dead-letter topic. Its JSON form is that of the command dead-letters list.
type DeadLetter struct {
	Partition int32 `json:"dead_letter_partition"`
	Offset    int64 `json:"dead_letter_offset"`
	Retried   bool  `json:"retried"` // arrived before the last call of Retry
	schemas.DeadLetter
	Unreadable string `json:"unreadable,omitempty"` // why the dead letter cannot be decoded; then DeadLetter is empty
}

// Retried is the result of DeadLetters.Retry.
type Retried struct {
	Published int            `json:"published"` // published retries and retry orders
	Topics    map[string]int `json:"topics"`    // the same, by topic
	Skipped   int            `json:"skipped"`   // undecodable dead letters, and those of topics without retries
}

// TooLongError is returned by DeadLetters.Retry for a dead letter that is too large for the group retries, if this user has no
// permission to write its original topic. The next call by a user with the permission retries it and all later ones.
type TooLongError struct{ Topic string }

// Error names the role and the permission that are needed.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("retry a dead letter of more than %d bytes: this user has no permission to write its topic %s: "+
		"run \"smartfeed dead-letters retry\" in the role %s, or grant %s on topic %s",
		topics.MaxRetriedBytes, e.Topic, topics.RoleOperate, topics.Write, e.Topic)
}

// Unwrap returns Kafka's own error.
func (e *TooLongError) Unwrap() error { return kerr.TopicAuthorizationFailed }

// MaxDeadLetters is the maximum number of dead letters of an answer.
const MaxDeadLetters = 1000

// deadLetterJSON is the JSON form of a dead letter. A value of nil is too long for a list.
type deadLetterJSON struct {
	InPartition    int32 `json:"dead_letter_partition"` // its position in the dead-letter topic
	InOffset       int64 `json:"dead_letter_offset"`
	Retried        bool  `json:"retried"` // arrived before the last call of Retry
	Attempts       int32 `json:"attempts"`
	FirstPartition int32 `json:"first_partition"` // of the record that failed first, of which this is a retry
	FirstOffset    int64 `json:"first_offset"`
	schemas.DeadLetter
	Time time.Time `json:"time"` // arrival time of the record
}

// deadLetterOf returns the JSON form of a dead letter. If it cannot be decoded, its reason says why.
func deadLetterOf(l DeadLetter) deadLetterJSON {
	if l.Unreadable != "" {
		l.Reason = "the dead letter cannot be decoded: " + l.Unreadable
	}
	partition, offset := l.First()
	return deadLetterJSON{l.Partition, l.Offset, l.Retried, l.Attempts, partition, offset, l.DeadLetter, l.Time.Writable().Time()}
}

func (s *Server) deadLetters(p *parameters) computation {
	limit := p.limit(DefaultLimit, MaxDeadLetters)
	return func(ctx context.Context) (any, error) {
		found, err := s.deps.DeadLetters.List(ctx, limit)
		return convert.All(found, deadLetterOf), err
	}
}

func (s *Server) retryKinds(*parameters) computation {
	return func(ctx context.Context) (any, error) {
		return listOf(s.deps.DeadLetters.Kinds(ctx))
	}
}

func (s *Server) retriedDeadLetters(p *parameters) computation {
	kind, state, limit := p.text("kind"), oneOf(p, "state", schemas.RetryStates()), p.limit(DefaultLimit, MaxDeadLetters)
	if len(kind) > maxKindBytes || strings.ContainsRune(kind, 0) || kind != "" && strings.Count(kind, "/") != 2 {
		p.wrong("kind " + quote(kind) + ": want topic/group/words")
	}
	return func(ctx context.Context) (any, error) {
		return listOf(s.deps.DeadLetters.Retries(ctx, kind, state, limit))
	}
}

// maxKindBytes is longer than the name of any kind.
const maxKindBytes = 512

// retryLimit is the answer of POST /v1/dead-letters/limits.
type retryLimit struct {
	Kind     string   `json:"kind"`
	Rate     *float64 `json:"rate"` // nil: the configured rate
	Priority int32    `json:"priority"`
}

// limitRequest is the body of POST /v1/dead-letters/limits.
type limitRequest struct {
	retryLimit
	Operator string `json:"operator"`
}

// limitRetries answers after the limit is acknowledged. The limit takes effect a moment later.
func (s *Server) limitRetries(ctx context.Context, req limitRequest) (retryLimit, error) {
	limit := schemas.RetryLimit{Scope: req.Kind, Rate: -1, Priority: req.Priority}
	var problems []string
	if req.Rate != nil {
		if limit.Rate = *req.Rate; limit.Rate < 0 || limit.Rate > schemas.MaxRetryRate {
			problems = append(problems, fmt.Sprintf("rate %v: want a number from 0 to %d", limit.Rate, schemas.MaxRetryRate))
		}
	}
	if req.Kind == "" || len(req.Kind) > maxKindBytes || len(req.Operator) > maxKindBytes {
		problems = append(problems, fmt.Sprintf("kind, operator: want a kind, and at most %d bytes each", maxKindBytes))
	}
	if len(problems) > 0 {
		return retryLimit{}, listed(problems)
	}
	err := s.deps.DeadLetters.Limit(ctx, limit, answerOf(ctx).operatorOr(req.Operator))
	answerOf(ctx).change(slog.String("kind", limit.Scope), slog.Float64("rate", limit.Rate), slog.Int("priority", int(limit.Priority)))
	var bad *schemas.BadRecordError
	switch {
	case errors.As(err, &bad):
		return retryLimit{}, listed([]string{bad.Reason})
	case err != nil:
		return retryLimit{}, unavailable("the limit may not be recorded; set it again").because(err)
	}
	return req.retryLimit, nil
}

// retryDeadLetters answers after the retries are published. After an interruption, the next call may publish some of them
// again. If this process may not write the topic of a long dead letter, further calls fail, too; see TooLongError.
func (s *Server) retryDeadLetters(*parameters) computation {
	return func(ctx context.Context) (any, error) {
		by := answerOf(ctx)
		done, err := s.deps.DeadLetters.Retry(ctx, by.operator())
		by.change(slog.Int("retried", done.Published), slog.Int("skipped", done.Skipped))
		var tooLong *TooLongError
		switch {
		case errors.As(err, &tooLong):
			return nil, problem(http.StatusInternalServerError, "%v", tooLong).because(err)
		case err != nil:
			return nil, unavailable("only some dead letters may have been retried; retry again").because(err)
		}
		return done, nil
	}
}
