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
	// WaitProcessed waits until all published events have been processed, and reports its progress to say.
	WaitProcessed func(ctx context.Context, say func(state string)) error
	// Start starts a progress display for an operation of total steps; negative: unknown.
	Start func(what string, total int) topics.Progress
	Wait  bool // wait until the last phase has been processed, too
}

// Phase is the timing of one part of an import.
type Phase struct {
	Name      string  `json:"name"`
	Events    int     `json:"events"`
	Published float64 `json:"published"`           // seconds until all events were acknowledged
	Processed float64 `json:"processed,omitempty"` // seconds from then until all were processed; 0: the import did not wait
}

// part holds the events of a phase.
type part struct {
	name   string
	events iter.Seq[schemas.Line]
	count  int
}

// Import publishes the events in three phases: users and follows, pins, actions. Before the next phase, it waits until a
// phase is processed, because pins need their followers and actions need their pins. It stops at the first event that is
// not acknowledged. Import is idempotent. It returns the completed phases even after an error.
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
