package lastfm

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Importer publishes a Dataset.
type Importer struct {
	Publisher load.Publisher
	// WaitProcessed waits until all published events have had their effect, and reports to say what it waits for.
	WaitProcessed func(ctx context.Context, say func(state string)) error
	// Start starts a progress display for an operation of total steps; negative: unknown.
	Start func(what string, total int) topics.Progress
	Wait  bool // wait for the effect of the last phase, too
}

// Phase is the timing of one part of an import.
type Phase struct {
	Name      string  `json:"name"`
	Events    int     `json:"events"`
	Published float64 `json:"published"`           // seconds until all events were acknowledged
	Processed float64 `json:"processed,omitempty"` // seconds from then until all had their effect; 0: not waited for
}

// part is what a phase publishes.
type part struct {
	name   string
	events iter.Seq[schemas.Line]
	count  int
}

// Import publishes the events in three phases: users and follows, pins, actions. It waits until each is processed before
// the next starts, so that every pin finds its followers and every action its pin. It stops at the first event that is not
// acknowledged. Importing the same set again from the start is harmless. Import returns the completed phases in any case.
func (i *Importer) Import(ctx context.Context, d *Dataset, shift time.Duration) ([]Phase, error) {
	c := d.Counts()
	parts := []part{
		{"users and follows", load.Concat(d.Users(shift), d.Follows(shift)), c.Users + c.Follows},
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
	sending := i.Start(p.name, p.count)
	if err := load.All(ctx, i.Publisher, p.events, func() { sending.Add(1) }); err != nil {
		return phase, err
	}
	phase.Published = sending.Done().Seconds()
	if !wait {
		return phase, nil
	}
	working := i.Start(p.name+" processed", -1)
	if err := i.WaitProcessed(ctx, working.Say); err != nil {
		return phase, err
	}
	phase.Processed = working.Done().Seconds()
	return phase, nil
}
