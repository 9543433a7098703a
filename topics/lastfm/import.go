package lastfm

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/smartfeed/smartfeed/internal/progress"
	"github.com/smartfeed/smartfeed/schemas"
)

// Publisher puts events into their topics; *topics.Publisher is one.
type Publisher interface {
	// Send publishes one event, waiting for room if need be. done is called when it is acknowledged, or with why not.
	Send(ctx context.Context, line schemas.Line, done func(error))
	// Flush returns when every event that was sent is acknowledged or given up.
	Flush(ctx context.Context) error
}

// Importer publishes a Dataset.
type Importer struct {
	Publisher Publisher
	// WorkOff returns when everything published so far has had its effect, and says meanwhile what it waits for.
	WorkOff  func(ctx context.Context, say func(state string)) error
	Progress *progress.Reporter
	Wait     bool // for the last phase, too, to be worked off
}

// Phase says how long one part of an import took.
type Phase struct {
	Name      string        `json:"name"`
	Events    int           `json:"events"`
	Published time.Duration `json:"published"`  // nanoseconds until all was acknowledged
	WorkedOff time.Duration `json:"worked_off"` // nanoseconds from then until all had its effect; 0: not waited for
}

// part is what a phase publishes.
type part struct {
	name   string
	events iter.Seq[schemas.Line]
	count  int
}

// Import publishes the events in three phases: users and follows, pins, actions. Each is worked off before the next
// begins, so that every pin finds its followers and every action its pin. It stops at the first event that is not
// acknowledged; to import the same again from the start does no harm. The phases that ended are returned in any case.
func (i *Importer) Import(ctx context.Context, d *Dataset, shift time.Duration) ([]Phase, error) {
	c := d.Counts()
	parts := []part{
		{"users and follows", concat(d.Users(shift), d.Follows(shift)), c.Users + c.Follows},
		{"pins", d.Pins(shift), c.Pins},
		{"actions", d.Actions(shift), c.Actions},
	}
	var phases []Phase
	for n, p := range parts {
		phase, err := i.phase(ctx, p, i.Wait || n < len(parts)-1)
		if err != nil {
			return phases, fmt.Errorf("import %s: %w", p.name, err)
		}
		phases = append(phases, phase)
	}
	return phases, nil
}

func (i *Importer) phase(ctx context.Context, p part, wait bool) (Phase, error) {
	phase := Phase{Name: p.name, Events: p.count}
	sending := i.Progress.Start(p.name, p.count)
	if err := i.publish(ctx, p.events, sending); err != nil {
		return phase, err
	}
	phase.Published = sending.Done()
	if !wait {
		return phase, nil
	}
	working := i.Progress.Start(p.name+" worked off", progress.Unknown)
	if err := i.WorkOff(ctx, working.Say); err != nil {
		return phase, err
	}
	phase.WorkedOff = working.Done()
	return phase, nil
}

// publish returns nil when every event is acknowledged, else the first reason why one is not.
func (i *Importer) publish(ctx context.Context, events iter.Seq[schemas.Line], sending *progress.Task) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	acknowledged := func(err error) {
		if err != nil {
			stop(fmt.Errorf("publish: %w", err))
			return
		}
		sending.Add(1)
	}
	for line := range events {
		if ctx.Err() != nil {
			break
		}
		i.Publisher.Send(ctx, line, acknowledged)
	}
	err := i.Publisher.Flush(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// concat yields what the first yields, then what the second does.
func concat(first, second iter.Seq[schemas.Line]) iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		for line := range first {
			if !yield(line) {
				return
			}
		}
		second(yield)
	}
}
