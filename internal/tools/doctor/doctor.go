// Package doctor checks the environment of smartfeed: brokers, topics, registry, stores, clocks, and running processes. It
// reports problems and how to fix them.
//
// A Check examines one dependency. Run runs all checks in parallel, each with its own timeout. A check is skipped if a
// check that it depends on has a problem. Checks have no visible side effects: they abort the only transaction, and
// register and create nothing.
//
// The levels are:
//
//   - ok;
//   - note: something optional is missing;
//   - warning: something is degraded, or is about to fail;
//   - problem: smartfeed does not run, or violates a guarantee.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/internal/command"
)

// Level is the severity of a finding. A greater one is worse.
type Level int

// The levels; see the package comment.
const (
	OK Level = iota
	Note
	Warning
	Problem
)

// String returns the level's name.
func (l Level) String() string { return [...]string{"ok", "note", "warning", "problem"}[l] }

// MarshalText returns the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Finding is one result of a check.
type Finding struct {
	Level   Level  `json:"level"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"` // what to do; empty: nothing
}

// Findings collects the findings of one check.
type Findings []Finding

// OK adds a finding of the level OK.
func (f *Findings) OK(format string, args ...any) {
	*f = append(*f, Finding{OK, fmt.Sprintf(format, args...), ""})
}

// Note adds a note. advice may be empty.
func (f *Findings) Note(advice, format string, args ...any) {
	*f = append(*f, Finding{Note, fmt.Sprintf(format, args...), advice})
}

// Warn adds a warning with advice.
func (f *Findings) Warn(advice, format string, args ...any) {
	*f = append(*f, Finding{Warning, fmt.Sprintf(format, args...), advice})
}

// Problem adds a problem with advice.
func (f *Findings) Problem(advice, format string, args ...any) {
	*f = append(*f, Finding{Problem, fmt.Sprintf(format, args...), advice})
}

// Level returns the worst level of the findings, OK if there are none.
func (f Findings) Level() Level {
	worst := OK
	for _, one := range f {
		worst = max(worst, one.Level)
	}
	return worst
}

// Check examines one dependency.
type Check struct {
	Name  string
	After string // name of an earlier check that must succeed first; empty: none
	// Examine adds its findings, and must return when its context is done. An error is a problem.
	Examine func(ctx context.Context, found *Findings) error
	Advice  string // for errors of Examine without advice
}

// advised is an error with advice.
type advised struct {
	advice string
	error
}

func (a *advised) Unwrap() error { return a.error }

// advise returns an error with advice.
func advise(advice, format string, args ...any) error {
	return &advised{advice, fmt.Errorf(format, args...)}
}

// Result is the result of a check.
type Result struct {
	Name     string        `json:"name"`
	Level    Level         `json:"level"`
	Took     time.Duration `json:"-"`
	Findings Findings      `json:"findings"`
}

// MarshalJSON adds the duration of the check in milliseconds.
func (r Result) MarshalJSON() ([]byte, error) {
	type plain Result
	return json.Marshal(struct {
		plain
		Took float64 `json:"took_ms"`
	}{plain(r), float64(r.Took.Microseconds()) / 1e3})
}

// Run runs all checks in parallel and returns their results in the order of the checks. The timeout of a check starts
// when the check in its After is done.
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

// outcome is the result of a check; it is valid after ready is closed.
type outcome struct {
	ready chan struct{}
	level Level
}

func (c Check) run(ctx context.Context, timeout time.Duration, before *outcome) Result {
	r := Result{Name: c.Name}
	if before != nil {
		<-before.ready
		if before.level != OK && before.level != Warning {
			r.Findings.Note("", "skipped, because it needs %s", c.After)
			r.Level = Note
			return r
		}
	}
	began := time.Now() // before the timeout starts: a check that times out takes at least the timeout
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no response within %s", timeout))
	defer cancel()
	if err := c.Examine(ctx, &r.Findings); err != nil {
		with := &advised{advice: c.Advice}
		errors.As(err, &with)
		r.Findings.Problem(with.advice, "%v", reason(ctx, err))
	}
	r.Took, r.Level = time.Since(began), r.Findings.Level()
	return r
}

// reason returns the cause of an error: the check's timeout, if it has passed.
func reason(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	before, _, _ := strings.Cut(err.Error(), ctx.Err().Error())
	return errors.New(before + cause.Error())
}

// Report holds the results of a run, with counts.
type Report struct {
	Version  string   `json:"version"` // of the program that ran the checks
	Problems int      `json:"problems"`
	Warnings int      `json:"warnings"`
	Checks   []Result `json:"checks"`
}

// NewReport counts the findings of results.
func NewReport(version string, results []Result) Report {
	r := Report{Version: version, Checks: results}
	for _, c := range results {
		for _, f := range c.Findings {
			switch f.Level {
			case Problem:
				r.Problems++
			case Warning:
				r.Warnings++
			}
		}
	}
	return r
}

// Err returns an error if there is a problem.
func (r Report) Err() error {
	if r.Problems == 0 {
		return nil
	}
	return fmt.Errorf("%s found", command.Count(r.Problems, "problem"))
}

// Text writes the report as text, one line per finding, followed by what to do.
func (r Report) Text(out io.Writer) error {
	for _, c := range r.Checks {
		for i, f := range c.Findings {
			name, took := c.Name, ""
			if i > 0 {
				name = ""
			} else if c.Took >= time.Millisecond {
				took = "  (" + c.Took.Round(time.Millisecond).String() + ")"
			}
			if _, err := fmt.Fprintf(out, "%-8s %-13s %s%s\n", f.Level, name, f.Message, took); err != nil {
				return err
			}
			if f.Advice != "" {
				if _, err := fmt.Fprintf(out, "%22s → %s\n", "", f.Advice); err != nil {
					return err
				}
			}
		}
	}
	_, err := fmt.Fprintf(out, "%s, %s\n", command.Count(r.Problems, "problem"), command.Count(r.Warnings, "warning"))
	return err
}
