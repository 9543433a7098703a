// Package processors contains the stream processors: each subpackage is one group, or code that groups share. This package
// runs the parts of a process and is the one place that decides whether an error restarts a part or stops the process.
package processors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Part is a long-running component of the process. Run blocks until its context ends, and can be called again after it
// returned. If Run returns an error with a method Fatal() bool that returns true, a restart cannot fix the error.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
	// Answers marks a part that answers requests with the help of the other parts. It is stopped first, and the other parts
	// only after it has returned, so that it can complete the requests in flight.
	Answers bool
}

// Condition is the current state of a part.
type Condition string

// Conditions of a part.
const (
	Idle    Condition = "idle"    // not started yet
	Running Condition = "running" // its Run has been called and has not returned
	Waiting Condition = "waiting" // Run failed; the part is restarted at NextTry
	Ended   Condition = "ended"   // stopped by the supervisor
	Failed  Condition = "failed"  // failed permanently; the supervisor stops
)

// PartState is a snapshot of one part.
type PartState struct {
	Name      string    `json:"name"`
	Condition Condition `json:"condition"`
	Since     time.Time `json:"since"` // when the part entered its condition
	Restarts  int       `json:"restarts"`
	LastError string    `json:"last_error,omitempty"` // of the last Run that returned an error
	NextTry   time.Time `json:"next_try,omitzero"`    // while waiting
}

// Backoff is the delay before a failed part is restarted. It grows with each consecutive failure. After a part ran for
// Healthy, the delay starts over.
type Backoff struct {
	backoff.ExponentialBackOff
	Healthy time.Duration
}

// DefaultBackoff returns a Backoff whose delays double from 100-200 ms to 15-30 s. A part that ran for a minute counts as
// healthy.
func DefaultBackoff() Backoff {
	return Backoff{Healthy: time.Minute, ExponentialBackOff: backoff.ExponentialBackOff{
		InitialInterval: 150 * time.Millisecond, MaxInterval: 22500 * time.Millisecond, Multiplier: 2, RandomizationFactor: 1.0 / 3,
	}}
}

// Supervisor runs parts and restarts those that fail.
type Supervisor struct {
	parts   []Part
	backoff Backoff
	log     *slog.Logger

	mu     sync.Mutex
	states []PartState // in the order of parts
}

// NewSupervisor returns a supervisor of parts. If log is nil, nothing is logged.
func NewSupervisor(backoff Backoff, log *slog.Logger, parts ...Part) *Supervisor {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Supervisor{parts: parts, backoff: backoff, log: log, states: make([]PartState, len(parts))}
	for i, p := range parts {
		s.states[i] = PartState{Name: p.Name, Condition: Idle}
	}
	return s
}

// Run runs all parts until ctx ends. It then stops the parts that answer requests, waits for them, and stops the others. A
// part that fails or returns early is restarted after a delay. A part that fails permanently stops all others, and Run
// returns its error.
func (s *Supervisor) Run(ctx context.Context) error {
	asked, end := context.WithCancel(ctx)
	defer end()
	rest, endRest := context.WithCancel(context.WithoutCancel(ctx))
	defer endRest()
	var answering, others sync.WaitGroup
	errs := make([]error, len(s.parts))
	for i, p := range s.parts {
		ctx, running := rest, &others
		if p.Answers {
			ctx, running = asked, &answering
		}
		running.Go(func() {
			if errs[i] = s.keep(ctx, i); errs[i] != nil {
				end()
			}
		})
	}
	<-asked.Done()
	answering.Wait()
	endRest()
	others.Wait()
	return errors.Join(errs...)
}

// State returns a snapshot of every part, in the order in which they were passed to NewSupervisor.
func (s *Supervisor) State() []PartState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]PartState(nil), s.states...)
}

// keep runs one part until it is stopped (nil) or fails permanently.
func (s *Supervisor) keep(ctx context.Context, i int) error {
	delays := s.backoff.ExponentialBackOff
	for {
		s.set(i, Running, nil, time.Time{})
		started := time.Now()
		var err error
		// The label separates the parts in a CPU profile, including the goroutines that they start: go tool pprof -tags.
		pprof.Do(ctx, pprof.Labels("part", s.parts[i].Name), func(ctx context.Context) { err = s.parts[i].Run(ctx) })
		if ctx.Err() != nil {
			s.set(i, Ended, err, time.Time{})
			return nil
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		if isFatal(err) {
			s.set(i, Failed, err, time.Time{})
			return fmt.Errorf("%s: %w", s.parts[i].Name, err)
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
	s.log.Error("part failed and will be restarted", "part", s.parts[i].Name, "error", err, "delay", delay)
	select {
	case <-time.After(delay):
		return true
	case <-ctx.Done():
		s.set(i, Ended, nil, time.Time{})
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
