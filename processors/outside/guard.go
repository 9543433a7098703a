package outside

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Guard bounds what calls to something that may hang or fail cost whoever makes them: a call has a deadline, and what fails
// is left alone for a while, see the package. It is safe for concurrent use.
type Guard struct {
	timeout time.Duration
	most    int // calls under way; 0: any number
	now     func() time.Time

	mu     sync.Mutex
	calls  int
	failed int       // in a row
	rests  time.Time // until when, once failed is Failures
	trying bool      // a call tries whether it is well again
}

// NewGuard returns a guard of any number of calls, each of which has at most timeout.
func NewGuard(timeout time.Duration, now func() time.Time) *Guard {
	return &Guard{timeout: timeout, now: now}
}

// Do calls f with a context that ends after the time-out, or when half of what ctx has left is over, whichever is first.
// f returns by then; what it does later is too late, whatever it returns.
//
// Do fails with an error that is ErrResting or ErrBusy without calling f, with one that is context.DeadlineExceeded when f
// was too late, and with what f returns. A cancelled ctx does not count as a failure of the service, nor does lateness when
// ctx left it less than Fair.
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
	if errors.Is(ended, context.DeadlineExceeded) { // also what does not heed its context was too late
		err = fmt.Errorf("no answer within %s: %w", given, ended)
	}
	g.leave(trying, g.judge(err, ended, given))
	return err
}

// given is how long a call may take.
func (g *Guard) given(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return g.timeout
	}
	return min(g.timeout, max(time.Until(deadline)/2, 0))
}

// enter takes a place, and says whether the call tries what rested.
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

// outcome is what a call says of what was called.
type outcome int

const (
	well    outcome = iota
	broke           // it failed, or was too late
	unknown         // whoever called had too little time, or has gone
)

// judge looks at a call that had so much time; ended is what its context ended with, nil if it did not.
func (g *Guard) judge(err, ended error, given time.Duration) outcome {
	late := errors.Is(ended, context.DeadlineExceeded)
	switch {
	case err == nil:
		return well
	case late && given < min(g.timeout, Fair), ended != nil && !late:
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
