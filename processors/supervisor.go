// Package processors contains the stream processors: each subpackage is one group, or code that groups share. This package
// runs the components of a process and is the one place that decides whether an error restarts a component or stops the
// process.
package processors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/smartfeed/smartfeed/internal/convert"
)

// Component is a long-running task of the process. Run blocks until its context ends, and can be called again after it
// returned. If Run returns an error with a method Fatal() bool that returns true, a restart cannot fix the error.
type Component struct {
	Name string
	Run  func(ctx context.Context) error
	// Serves marks a component that serves requests with the help of the others. The others are stopped only after it has
	// returned, because it still needs them for the requests in flight.
	Serves bool
}

// Condition is the current state of a component.
type Condition string

// Conditions of a component.
const (
	Idle    Condition = "idle"    // not started yet
	Running Condition = "running" // its Run has been called and has not returned
	Waiting Condition = "waiting" // Run failed; the component is restarted at NextTry
	Stopped Condition = "stopped" // stopped by the supervisor
	Failed  Condition = "failed"  // failed permanently; the supervisor stops
)

// ComponentState is a snapshot of one component.
type ComponentState struct {
	Name      string    `json:"name"`
	Condition Condition `json:"condition"`
	Since     time.Time `json:"since"` // when the component entered its condition
	Restarts  int       `json:"restarts"`
	LastError string    `json:"last_error,omitempty"` // of the last Run that returned an error
	NextTry   time.Time `json:"next_try,omitzero"`    // while waiting
}

// Backoff is the delay before a failed component is restarted. It grows with each consecutive failure. After a component
// ran for Healthy, the delay starts over.
type Backoff struct {
	backoff.ExponentialBackOff
	Healthy time.Duration
}

// DefaultBackoff returns a Backoff whose delays double from 100-200 ms to 15-30 s. A component that ran for a minute
// counts as healthy.
func DefaultBackoff() Backoff {
	return Backoff{Healthy: time.Minute, ExponentialBackOff: backoff.ExponentialBackOff{
		InitialInterval: 150 * time.Millisecond, MaxInterval: 22500 * time.Millisecond, Multiplier: 2, RandomizationFactor: 1.0 / 3,
	}}
}

// Supervisor runs components and restarts those that fail.
type Supervisor struct {
	components []Component
	backoff    Backoff
	log        *slog.Logger

	mu     sync.Mutex
	states []ComponentState // in the order of components
}

// NewSupervisor returns a supervisor of components. If log is nil, nothing is logged.
func NewSupervisor(backoff Backoff, log *slog.Logger, components ...Component) *Supervisor {
	return &Supervisor{
		components: components, backoff: backoff, log: cmp.Or(log, slog.New(slog.DiscardHandler)),
		states: convert.All(components, func(p Component) ComponentState { return ComponentState{Name: p.Name, Condition: Idle} }),
	}
}

// Run runs all components until ctx ends. It then stops the components that serve requests, waits for them, and stops the
// others. A component that fails or returns early is restarted after a delay. A component that fails permanently stops all
// others, and Run returns its error.
func (s *Supervisor) Run(ctx context.Context) error {
	first, stop := context.WithCancel(ctx)
	defer stop()
	second, stopOthers := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOthers()
	var serving, others sync.WaitGroup
	errs := make([]error, len(s.components))
	for i, p := range s.components {
		ctx, running := second, &others
		if p.Serves {
			ctx, running = first, &serving
		}
		running.Go(func() {
			if errs[i] = s.runComponent(ctx, i); errs[i] != nil {
				stop()
			}
		})
	}
	<-first.Done()
	serving.Wait()
	stopOthers()
	others.Wait()
	return errors.Join(errs...)
}

// State returns a snapshot of every component, in the order in which they were passed to NewSupervisor.
func (s *Supervisor) State() []ComponentState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]ComponentState(nil), s.states...)
}

// runComponent runs one component until it is stopped (nil) or fails permanently.
func (s *Supervisor) runComponent(ctx context.Context, i int) error {
	delays := s.backoff.ExponentialBackOff
	for {
		s.set(i, Running, nil, time.Time{})
		started := time.Now()
		var err error
		// The label separates the components in a CPU profile, including the goroutines that they start: go tool pprof -tags.
		pprof.Do(ctx, pprof.Labels("component", s.components[i].Name), func(ctx context.Context) { err = s.components[i].Run(ctx) })
		if ctx.Err() != nil {
			s.set(i, Stopped, err, time.Time{})
			return nil
		}
		if err == nil {
			err = errors.New("returned before it was stopped")
		}
		if isFatal(err) {
			s.set(i, Failed, err, time.Time{})
			return fmt.Errorf("%s: %w", s.components[i].Name, err)
		}
		if time.Since(started) >= s.backoff.Healthy {
			delays.Reset()
		}
		if !s.wait(ctx, i, err, delays.NextBackOff()) {
			return nil
		}
	}
}

// wait waits before a restart. It returns false if the supervisor stops in the meantime.
func (s *Supervisor) wait(ctx context.Context, i int, err error, delay time.Duration) bool {
	s.set(i, Waiting, err, time.Now().Add(delay))
	s.log.Error("component failed and will be restarted", "component", s.components[i].Name, "error", err, "delay", delay)
	select {
	case <-time.After(delay):
		return true
	case <-ctx.Done():
		s.set(i, Stopped, nil, time.Time{})
		return false
	}
}

func (s *Supervisor) set(i int, c Condition, err error, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.states[i]
	if st.Condition == Waiting && c == Running {
		st.Restarts++
	}
	st.Condition, st.Since, st.NextTry = c, time.Now(), next
	if err != nil {
		st.LastError = err.Error()
	}
}

// isFatal reports whether an error declares itself fatal.
func isFatal(err error) bool {
	var fatal interface{ Fatal() bool }
	return errors.As(err, &fatal) && fatal.Fatal()
}
