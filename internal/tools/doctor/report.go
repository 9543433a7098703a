package doctor

import (
	"fmt"
	"io"
	"time"

	"github.com/smartfeed/smartfeed/internal/command"
)

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
