package external

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

// waitForEnd blocks until its context ends.
func waitForEnd(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// A late call is a failure if it had at least Fair. The caller always keeps half of its remaining time.
func TestGuard_CountsLateCalls(t *testing.T) {
	const ms = time.Millisecond
	ignoring := func(context.Context) error { time.Sleep(140 * ms); return nil }
	for name, c := range map[string]struct {
		timeout, wait time.Duration // timeout of the guard, and remaining time of the caller; 0: unlimited
		cancels       time.Duration // when the caller cancels; 0: never
		call          func(context.Context) error
		took          time.Duration
		want          error
		opens         bool
	}{
		"its timeout":                                        {10 * ms, 150 * ms, 0, waitForEnd, 10 * ms, context.DeadlineExceeded, true},
		"half of the remaining time":                         {5 * time.Second, 150 * ms, 0, waitForEnd, 75 * ms, context.DeadlineExceeded, true},
		"no deadline":                                        {5 * time.Second, 0, 0, waitForEnd, 5 * time.Second, context.DeadlineExceeded, true},
		"a call that ignores its context":                    {5 * time.Second, 150 * ms, 0, ignoring, 140 * ms, context.DeadlineExceeded, true},
		"exactly the fair time":                              {5 * time.Second, 2 * Fair, 0, waitForEnd, Fair, context.DeadlineExceeded, true},
		"less than the fair time":                            {5 * time.Second, 2*Fair - 2*ms, 0, waitForEnd, Fair - ms, context.DeadlineExceeded, false},
		"less than a short timeout":                          {10 * ms, 18 * ms, 0, waitForEnd, 9 * ms, context.DeadlineExceeded, false},
		"the caller cancels":                                 {5 * time.Second, 150 * ms, 70 * ms, waitForEnd, 70 * ms, context.Canceled, false},
		"the caller cancels a call that ignores its context": {5 * time.Second, 150 * ms, 100 * ms, ignoring, 140 * ms, context.DeadlineExceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, called := NewGuard(c.timeout), 0
				do := func() (time.Duration, error) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if c.wait > 0 {
						ctx, cancel = context.WithTimeout(ctx, c.wait)
						defer cancel()
					}
					if c.cancels > 0 {
						defer time.AfterFunc(c.cancels, cancel).Stop()
					}
					began := time.Now()
					err := g.Do(ctx, func(ctx context.Context) error { called++; return c.call(ctx) })
					return time.Since(began), err
				}
				for n := range Failures {
					if took, err := do(); !errors.Is(err, c.want) || took != c.took {
						t.Fatalf("call %d: got %v after %s, want %v after %s", n, err, took, c.want, c.took)
					}
				}
				_, err := do()
				if errors.Is(err, ErrOpen) != c.opens || c.opens != (called == Failures) {
					t.Errorf("got %v after %d calls; want an open breaker: %v", err, called, c.opens)
				}
			})
		})
	}
}

// A service with a long timeout is also limited to half of the caller's remaining time.
func TestCall_OpensForHangingService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connected := 0
		silent := func(context.Context, string, string) (net.Conn, error) {
			connected++
			near, far := net.Pipe()
			t.Cleanup(func() { _ = far.Close() })
			return near, nil
		}
		s := New(Config{URL: "http://slow.example/", Timeout: 5 * time.Second}, silent)
		defer s.Close()
		for n := range Failures + 1 {
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			err := s.Call(ctx, 1, new(any), 1<<20)
			expect.Error(t, ctx.Err(), "", "call %d: time of the caller", n)
			cancel()
			want := context.DeadlineExceeded
			if n == Failures {
				want = ErrOpen
			}
			expect.Is(t, err, want, "call %d", n)
		}
		expect.Equal(t, connected, Failures, "connections")
	})
}

// While the breaker is half-open, one call at a time tests the function. A test without a result is repeated immediately.
func TestGuard_TestsOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard(time.Minute)
		failing := func(context.Context) error { return errors.New("broken") }
		for range Failures {
			_ = g.Do(t.Context(), failing)
		}
		time.Sleep(OpenFor + 1)
		for range 2 {
			err := g.Do(t.Context(), func(context.Context) error {
				expect.Is(t, g.Do(t.Context(), failing), ErrOpen, "during a test")
				return ErrBusy
			})
			expect.Is(t, err, ErrBusy, "error")
		}
	})
}
