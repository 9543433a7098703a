// Package processors computes: each folder below it is one group or what groups share. Here is what keeps their parts
// running, the one place that decides what becomes of an error.
package processors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/internal/pause"
)

// Part is a long-running piece of the program. Run works until its context ends, and may be called again after it
// returned. An error with a method Fatal() bool that returns true is one that starting again cannot mend.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
	// Answers says that the part answers others out of what the rest have. It is ended first, and the rest when it has: what it
	// has begun to answer is answered in full.
	Answers bool
}

// Condition is what a part is doing.
type Condition string

// The conditions of a part.
const (
	Idle    Condition = "idle"    // not started yet
	Running Condition = "running" // its Run has been called and has not returned
	Waiting Condition = "waiting" // it failed, and is started again at NextTry
	Ended   Condition = "ended"   // it was asked to end, and did
	Failed  Condition = "failed"  // for good: the supervisor ends
)

// PartState is a snapshot of one part.
type PartState struct {
	Name      string    `json:"name"`
	Condition Condition `json:"condition"`
	Since     time.Time `json:"since"` // of the condition
	Restarts  int       `json:"restarts"`
	LastError string    `json:"last_error,omitempty"` // of the last Run that returned one
	NextTry   time.Time `json:"next_try,omitzero"`    // while waiting
}

// Backoff says when a failed part is started again: after Least, twice as much after each further failure, at most
// Most, each time between half of that and all of it. A part that ran for Healthy begins anew.
type Backoff struct {
	Least, Most, Healthy time.Duration
	Random               func() float64 // in [0, 1)
}

// DefaultBackoff waits 200 ms at first and 30 s at most; a minute counts as healthy.
func DefaultBackoff() Backoff {
	return Backoff{Least: 200 * time.Millisecond, Most: 30 * time.Second, Healthy: time.Minute, Random: rand.Float64}
}

// wait is how long to wait after so many failures in a row, at least one.
func (b Backoff) wait(failures int) time.Duration {
	most := b.Most
	if doublings := failures - 1; doublings < 32 {
		most = min(b.Least<<doublings, b.Most)
	}
	return most/2 + time.Duration(b.Random()*float64(most/2))
}

// Supervisor runs parts and starts again those that fail.
type Supervisor struct {
	parts   []Part
	backoff Backoff
	log     *slog.Logger

	mu     sync.Mutex
	states []PartState // in the order of parts
}

// NewSupervisor prepares to run parts. A nil log: none.
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

// Run runs all parts until ctx ends, and then ends and waits for those that answer, and after them for the rest. A part that
// fails, or ends without having been asked to, is started again after a while; one that fails for good ends the others, and its
// error is returned.
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

// State returns a snapshot of every part, in the order in which they were given.
func (s *Supervisor) State() []PartState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]PartState(nil), s.states...)
}

// keep runs one part until it is asked to end (nil) or fails for good.
func (s *Supervisor) keep(ctx context.Context, i int) error {
	for failures := 0; ; {
		s.set(i, Running, nil, time.Time{})
		started := time.Now()
		var err error
		// A CPU profile then tells the parts apart, with all that they start: go tool pprof -tags.
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
			failures = 0
		}
		failures++
		if !s.pause(ctx, i, err, s.backoff.wait(failures)) {
			return nil
		}
	}
}

// pause waits before a part is started again. False: it is not, the supervisor ends.
func (s *Supervisor) pause(ctx context.Context, i int, err error, wait time.Duration) bool {
	s.set(i, Waiting, err, time.Now().Add(wait))
	s.log.Error("part failed, to be started again", "part", s.parts[i].Name, "error", err, "in", wait)
	whole := pause.For(ctx, wait)
	if !whole {
		s.set(i, Ended, nil, time.Time{})
	}
	return whole
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

// isFatal asks the error itself.
func isFatal(err error) bool {
	var fatal interface{ Fatal() bool }
	return errors.As(err, &fatal) && fatal.Fatal()
}
