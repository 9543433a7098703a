package lastfm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// phaseTimeout limits the processing of a phase.
const phaseTimeout = 15 * time.Minute

// Phase is the timing of one part of an import.
type Phase struct {
	Name      string  `json:"name"`
	Events    int     `json:"events"`
	Published float64 `json:"published"` // seconds until all events were acknowledged
	Processed float64 `json:"processed"` // seconds from then until all were processed
}

// part holds the events of a phase.
type part struct {
	name   string
	events iter.Seq[schemas.Line]
	count  int
}

// publish publishes the events in three phases: users and follows, pins, actions. Before the next phase, it waits until a
// phase is processed, because pins need their followers and actions need their pins. It stops at the first event that is
// not acknowledged.
func publish(ctx context.Context, s topics.Setup, d *Dataset, shift time.Duration) ([]Phase, error) {
	publisher, err := load.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer publisher.Close()
	c := d.Counts()
	var phases []Phase
	for _, p := range []part{
		{"users and follows", load.Concat(d.Users(shift), d.Follows(shift)), c.Users + c.Follows},
		{"pins", d.Pins(shift), c.Pins},
		{"actions", d.Actions(shift), c.Actions},
	} {
		phase, err := p.publish(ctx, s, publisher)
		if err != nil {
			return nil, fmt.Errorf("import %s: %w", p.name, err)
		}
		phases = append(phases, phase)
	}
	return phases, nil
}

func (p part) publish(ctx context.Context, s topics.Setup, to load.Publisher) (Phase, error) {
	phase := Phase{Name: p.name, Events: p.count}
	sending := s.Start(p.name, p.count)
	if err := load.All(ctx, to, p.events, func(schemas.Line) { sending.Add(1) }); err != nil {
		return phase, err
	}
	phase.Published = sending.Done().Seconds()
	working := s.Start(p.name+" processed", -1)
	if err := load.WaitProcessed(ctx, s, phaseTimeout, working.Say); err != nil {
		return phase, err
	}
	phase.Processed = working.Done().Seconds()
	return phase, nil
}

// Summary is the result of an import.
type Summary struct {
	Counts
	LastAction time.Time `json:"last_action"` // --last-action of an identical import
	Phases     []Phase   `json:"phases"`
	Seconds    float64   `json:"seconds"`

	// Results are the counts of the processes, if they responded.
	Results   *topics.Results `json:"results,omitempty"`
	NoResults string          `json:"no_results,omitempty"` // why Results is unknown
}

// Import publishes a set, waits until it is processed, and returns the timing and, if the processes respond, the results.
// last is the new time of the last action; all other times are shifted equally. Import is idempotent. The error includes the
// --last-action that resumes an interrupted import.
func Import(ctx context.Context, s topics.Setup, d *Dataset, last time.Time) (Summary, error) {
	start := time.Now()
	before, unknown := results(ctx, s)
	phases, err := publish(ctx, s, d, d.ShiftTo(last))
	if err != nil {
		return Summary{}, fmt.Errorf("%w (to resume: --last-action %s)", err, last.Format(time.RFC3339))
	}
	summary := Summary{Counts: d.Counts(), LastAction: last, Phases: phases, Seconds: time.Since(start).Seconds()}
	summary.addResults(ctx, s, before, unknown)
	return summary, nil
}

// results queries the counts of the running processes.
func results(ctx context.Context, s topics.Setup) (topics.Results, error) {
	if s.Results == nil {
		return topics.Results{}, errors.New("no process to request counts from")
	}
	return s.Results(ctx)
}

// addResults sets the results of the import: the difference of the counts before and after it, if both are known.
func (s *Summary) addResults(ctx context.Context, setup topics.Setup, before topics.Results, unknown error) {
	var now topics.Results
	if unknown == nil {
		now, unknown = results(ctx, setup)
	}
	if unknown != nil {
		s.NoResults = unknown.Error()
		return
	}
	done := now.Since(before)
	s.Results = &done
}

// Announce prints the numbers of events of an import and of skipped rows.
func Announce(out io.Writer, c Counts, last time.Time) {
	fmt.Fprintf(out, "importing %s, %s, %s, %s\n",
		command.Count(c.Users, "user"), command.Count(c.Follows, "follow"), command.Count(c.Pins, "pin"), command.Count(c.Actions, "action"))
	fmt.Fprintf(out, "skipping %s dated outside 2005-08-01 … 2011-05-31, %s of artists that no other user tagged\n",
		command.Count(c.Skipped.Undated, "tag row"), command.Count(c.Skipped.NoPin, "listening row"))
	fmt.Fprintf(out, "the time of the last action is %s; --last-action %[1]s resumes an interrupted import\n", last.Format(time.RFC3339))
}
