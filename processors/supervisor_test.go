package processors_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors"
)

// exactly returns a Backoff without jitter: 1, 2, 4, 8, 10, 10 … seconds.
func exactly() processors.Backoff {
	delays := backoff.ExponentialBackOff{InitialInterval: time.Second, MaxInterval: 10 * time.Second, Multiplier: 2}
	return processors.Backoff{ExponentialBackOff: delays, Healthy: time.Minute}
}

// failing is a component that runs for a fixed time and then fails. It records when it was started.
type failing struct {
	began  time.Time
	starts []time.Duration
	runs   time.Duration
}

func (f *failing) run(ctx context.Context) error {
	f.starts = append(f.starts, time.Since(f.began))
	select {
	case <-time.After(f.runs):
		return errors.New("broken")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func supervise(t *testing.T, s *processors.Supervisor, forTime time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), forTime)
	defer cancel()
	return s.Run(ctx)
}

func TestSupervisor_RestartsWithGrowingDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{began: time.Now()}
		s := processors.NewSupervisor(exactly(), nil, processors.Component{Name: "p", Run: f.run})
		must.OK(t, supervise(t, s, 36*time.Second))
		want := []time.Duration{0, 1, 3, 7, 15, 25, 35} // pauses of 1, 2, 4, 8, 10, 10 s
		for i := range want {
			want[i] *= time.Second
		}
		expect.NoDiff(t, f.starts, want, "starts")
		if got := s.State()[0]; got.Restarts != 6 || got.LastError != "broken" || got.Condition != processors.Stopped {
			t.Errorf("state %+v", got)
		}
	})
}

func TestSupervisor_HealthyRunResetsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{began: time.Now(), runs: time.Minute}
		s := processors.NewSupervisor(exactly(), nil, processors.Component{Name: "p", Run: f.run})
		must.OK(t, supervise(t, s, 200*time.Second))
		want := []time.Duration{0, 61 * time.Second, 122 * time.Second, 183 * time.Second}
		expect.NoDiff(t, f.starts, want, "starts")
	})
}

func TestDefaultBackoff_Jitter(t *testing.T) {
	const ms = time.Millisecond
	for range 100 {
		delays := processors.DefaultBackoff()
		for least := 100 * ms; least < time.Minute; least *= 2 {
			bound := min(least, 15*time.Second)
			expect.Between(t, delays.NextBackOff(), bound, 2*bound+1, "backoff")
		}
	}
}

type fatalError struct{ error }

func (fatalError) Fatal() bool { return true }

func TestSupervisor_FatalErrorStopsAllComponents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cleanedUp := false
		s := processors.NewSupervisor(exactly(), nil,
			processors.Component{Name: "bad", Run: func(context.Context) error {
				time.Sleep(time.Second)
				return fmt.Errorf("run: %w", fatalError{errors.New("another topic")})
			}},
			processors.Component{Name: "good", Run: func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(3 * time.Second) // its cleanup, for which the supervisor waits
				cleanedUp = true
				return nil
			}})
		expect.Error(t, s.Run(t.Context()), "bad: run: another topic", "Run")
		expect.True(t, cleanedUp, "Run waits for the other component")
		got := []processors.Condition{s.State()[0].Condition, s.State()[1].Condition}
		expect.NoDiff(t, got, []processors.Condition{processors.Failed, processors.Stopped}, "conditions")
	})
}

// Components that serve requests are stopped first, because they need the other components to complete the requests in flight.
func TestSupervisor_StopsServingComponentsFirst(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var store, http time.Duration // when each returned
			began := time.Now()
			s := processors.NewSupervisor(exactly(), nil,
				processors.Component{Name: "store", Run: func(ctx context.Context) error {
					<-ctx.Done()
					store = time.Since(began)
					return nil
				}},
				processors.Component{Name: "http", Serves: true, Run: func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(3 * time.Second) // completes its requests in flight
					http = time.Since(began)
					return nil
				}},
				processors.Component{Name: "group", Run: func(ctx context.Context) error {
					if fails {
						time.Sleep(time.Second)
						return fatalError{errors.New("another topic")}
					}
					<-ctx.Done()
					return nil
				}})
			expect.Equal(t, supervise(t, s, time.Minute) != nil, fails, "Run returns the error of a component that fails permanently")
			want := time.Minute + 3*time.Second
			if fails {
				want = 4 * time.Second
			}
			stopped := [2]time.Duration{http, store}
			expect.Equal(t, stopped, [2]time.Duration{want, want}, "fails permanently: %v: http and store stopped after", fails)
		})
	}
}

func TestSupervisor_RestartsComponentThatReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		s := processors.NewSupervisor(exactly(), nil, processors.Component{Name: "p", Run: func(context.Context) error {
			runs++
			return nil
		}})
		must.OK(t, supervise(t, s, 1500*time.Millisecond))
		expect.Equal(t, runs, 2, "runs")
	})
}

func TestSupervisor_StateWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{began: time.Now(), runs: time.Second}
		s := processors.NewSupervisor(exactly(), nil, processors.Component{Name: "p", Run: f.run})
		expect.Equal(t, s.State()[0].Condition, processors.Idle, "condition before Run")
		go func() { _ = supervise(t, s, 10*time.Second) }()
		began := time.Now()
		time.Sleep(500 * time.Millisecond)
		expect.Equal(t, s.State()[0].Condition, processors.Running, "condition after 0.5 s")
		time.Sleep(time.Second)
		got := s.State()[0]
		if got.Condition != processors.Waiting || !got.NextTry.Equal(began.Add(2*time.Second)) || got.LastError != "broken" {
			t.Errorf("after 1.5 s: %+v, want waiting until 2 s", got)
		}
	})
}
