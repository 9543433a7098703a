// Package doctor looks at everything that the product needs of the world around it (brokers, topics, registry, stores,
// the local directory, clocks, running processes), and says of each what is wrong and what to do about it.
//
// A Check looks at one thing. Run takes all of them at once, each with a time of its own; one that makes no sense while
// another has a problem is skipped. Looking changes nothing that anybody else can see: the one transaction that is tried
// is aborted, and nothing is registered or created.
//
// Levels: ok; a note, of what is not there and need not be; a warning, of what works and will not for long or not for
// all; a problem, with which the product does not run or loses what it promises.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Level is how bad a finding is. A greater one is worse.
type Level int

// The levels, see the package.
const (
	OK Level = iota
	Note
	Warning
	Problem
)

// String returns the level's name.
func (l Level) String() string { return [...]string{"ok", "note", "warning", "problem"}[l] }

// MarshalText writes the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Finding is one thing that a check has to say.
type Finding struct {
	Level Level  `json:"level"`
	Says  string `json:"says"`
	Do    string `json:"do,omitempty"` // empty: nothing is to be done
}

// Findings collects what one check has to say.
type Findings []Finding

// OK adds what is in order.
func (f *Findings) OK(format string, args ...any) {
	*f = append(*f, Finding{OK, fmt.Sprintf(format, args...), ""})
}

// Note adds what is not there and need not be; do may be empty.
func (f *Findings) Note(do, format string, args ...any) {
	*f = append(*f, Finding{Note, fmt.Sprintf(format, args...), do})
}

// Warn adds a warning with what to do.
func (f *Findings) Warn(do, format string, args ...any) {
	*f = append(*f, Finding{Warning, fmt.Sprintf(format, args...), do})
}

// Problem adds a problem with what to do.
func (f *Findings) Problem(do, format string, args ...any) {
	*f = append(*f, Finding{Problem, fmt.Sprintf(format, args...), do})
}

// Level is the worst of the findings, OK without any.
func (f Findings) Level() Level {
	worst := OK
	for _, one := range f {
		worst = max(worst, one.Level)
	}
	return worst
}

// Check looks at one thing. Look returns by the end of its context.
type Check struct {
	Name  string
	After string // name of an earlier check without which this one makes no sense; empty: none
	// Instead has it look only if that one found nothing there, a note, and be silent otherwise.
	Instead bool
	Look    func(ctx context.Context, found *Findings)
}

// Result is what a check has found.
type Result struct {
	Name     string        `json:"name"`
	Level    Level         `json:"level"`
	Took     time.Duration `json:"-"`
	Findings Findings      `json:"findings"`
}

// MarshalJSON adds the time that the check took, in milliseconds.
func (r Result) MarshalJSON() ([]byte, error) {
	type plain Result
	return json.Marshal(struct {
		plain
		Took float64 `json:"took_ms"`
	}{plain(r), float64(r.Took.Microseconds()) / 1e3})
}

// Run takes all checks at once and returns their results in the order of the checks. Each has so much time, from when
// the one that it comes after is done.
func Run(ctx context.Context, timeout time.Duration, checks ...Check) []Result {
	results := make([]Result, len(checks))
	done := map[string]*outcome{}
	for _, c := range checks {
		done[c.Name] = &outcome{ready: make(chan struct{})}
	}
	var all sync.WaitGroup
	for i, c := range checks {
		all.Go(func() {
			results[i] = c.run(ctx, timeout, done[c.After])
			done[c.Name].level = results[i].Level
			close(done[c.Name].ready)
		})
	}
	all.Wait()
	return results
}

// outcome is how a check ended, once ready is closed.
type outcome struct {
	ready chan struct{}
	level Level
}

func (c Check) run(ctx context.Context, timeout time.Duration, before *outcome) Result {
	r := Result{Name: c.Name}
	if before != nil {
		<-before.ready
		if c.Instead && before.level != Note {
			return r
		}
		if !c.Instead && before.level != OK && before.level != Warning {
			r.Findings.Note("", "not looked at without %s", c.After)
			r.Level = Note
			return r
		}
	}
	began := time.Now() // before the timeout is: what took all of it took no less
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	c.Look(ctx, &r.Findings)
	r.Took, r.Level = time.Since(began), r.Findings.Level()
	return r
}

// reason says why something failed: the end of the check's time, if that is it.
func reason(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
