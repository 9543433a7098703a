package external

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Guard is a circuit breaker with a deadline. It limits the cost of calls to a function that hangs or fails, see the package
// comment. It is safe for concurrent use.
type Guard struct {
	timeout time.Duration
	breaker *gobreaker.TwoStepCircuitBreaker[any]
}

// NewGuard returns a Guard. Each call may take at most timeout.
func NewGuard(timeout time.Duration) *Guard {
	return &Guard{timeout, gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		MaxRequests: 1, // while it is half-open
		Timeout:     OpenFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= Failures },
		IsExcluded:  func(err error) bool { return errors.Is(err, errInconclusive) },
	})}
}

// errInconclusive is the outcome of a call that does not show the state of the service: the caller had too little time,
// canceled, or could not hold the response.
var errInconclusive = errors.New("inconclusive call")

// Do calls f with a context that ends after the timeout, or after half of the remaining time of ctx, whichever is earlier. f
// must return when its context ends. Do discards a later result as late.
//
// Do returns an error that wraps ErrOpen without calling f, one that wraps context.DeadlineExceeded if f is late, or the error
// of f. A call does not count as a failure in these cases: ctx is canceled; f is late because ctx left it less than Fair; or f
// returns ErrBusy.
func (g *Guard) Do(ctx context.Context, f func(ctx context.Context) error) error {
	done, err := g.breaker.Allow()
	if err != nil {
		return ErrOpen
	}
	timeout := g.timeoutWithin(ctx)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = f(limited)
	ended := limited.Err()
	if errors.Is(ended, context.DeadlineExceeded) { // f is late even if it ignored its context
		err = fmt.Errorf("no response within %s: %w", timeout, ended)
	}
	done(g.outcome(err, ended, timeout))
	return err
}

// Guarded calls a function with a result by Guard.Do.
func Guarded[T any](ctx context.Context, g *Guard, f func(ctx context.Context) (T, error)) (result T, err error) {
	err = g.Do(ctx, func(ctx context.Context) (err error) {
		result, err = f(ctx)
		return err
	})
	return result, err
}

// timeoutWithin returns how long a call may take.
func (g *Guard) timeoutWithin(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return g.timeout
	}
	return min(g.timeout, max(time.Until(deadline)/2, 0))
}

// outcome returns err, or errInconclusive. ended is the error of the call's context, or nil.
func (g *Guard) outcome(err, ended error, timeout time.Duration) error {
	late := errors.Is(ended, context.DeadlineExceeded)
	if late && timeout < min(g.timeout, Fair) || err != nil && ended != nil && !late || errors.Is(err, ErrBusy) {
		return errInconclusive
	}
	return err
}
