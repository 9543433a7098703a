package outside

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Guard is a circuit breaker with a deadline. It limits what calls to something that hangs or fails cost the caller, see the
// package comment. It is safe for concurrent use.
type Guard struct {
	timeout time.Duration
	most    int // calls in flight; 0: unlimited
	now     func() time.Time

	mu     sync.Mutex
	calls  int
	failed int       // in a row
	rests  time.Time // until when the breaker is open, if failed has reached Failures
	trying bool      // a call tests the service (half-open)
}

// NewGuard returns a Guard without a limit on concurrent calls. Each call may take at most timeout.
func NewGuard(timeout time.Duration, now func() time.Time) *Guard {
	return &Guard{timeout: timeout, now: now}
}

// Do calls f with a context that ends after the timeout, or after half of the remaining time of ctx, whichever is earlier. f
// must return when its context ends. A later result is discarded: it counts as late.
//
// Do returns an error that wraps ErrResting or ErrBusy without calling f, one that wraps context.DeadlineExceeded if f is
// late, or the error of f. It does not count as a failure if ctx is cancelled, or if f is late because ctx left it less than
// Fair.
func (g *Guard) Do(ctx context.Context, f func(ctx context.Context) error) error {
	trying, err := g.enter()
	if err != nil {
		return err
	}
	given := g.given(ctx)
	limited, cancel := context.WithTimeout(ctx, given)
	defer cancel()
	err = f(limited)
	ended := limited.Err()
	if errors.Is(ended, context.DeadlineExceeded) { // f is late even if it ignored its context
		err = fmt.Errorf("no answer within %s: %w", given, ended)
	}
	g.leave(trying, g.judge(err, ended, given))
	return err
}

// given returns how long a call may take.
func (g *Guard) given(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return g.timeout
	}
	return min(g.timeout, max(time.Until(deadline)/2, 0))
}

// enter starts a call. It reports whether the call tests a service whose breaker is half-open.
func (g *Guard) enter() (trying bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.most > 0 && g.calls >= g.most:
		return false, ErrBusy
	case g.failed >= Failures && (g.trying || g.now().Before(g.rests)):
		return false, ErrResting
	}
	trying = g.failed >= Failures
	g.trying = g.trying || trying
	g.calls++
	return trying, nil
}

// outcome is what the result of a call says about the service.
type outcome int

const (
	well    outcome = iota
	broke           // failed or late
	unknown         // the caller had too little time, cancelled, or could not hold the answer
)

// judge returns the outcome of a call that was given so much time. ended is the error of its context, or nil.
func (g *Guard) judge(err, ended error, given time.Duration) outcome {
	late := errors.Is(ended, context.DeadlineExceeded)
	switch {
	case err == nil:
		return well
	case late && given < min(g.timeout, Fair), ended != nil && !late, errors.Is(err, ErrBusy):
		return unknown
	}
	return broke
}

func (g *Guard) leave(trying bool, how outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls--
	if trying {
		g.trying = false
	}
	switch how {
	case well:
		g.failed = 0
	case broke:
		g.failed++
		g.rests = g.now().Add(Rest)
	}
}
