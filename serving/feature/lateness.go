package feature

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Lateness measures how late actions are in a store that takes them from the topic by itself, where no Sink sees them come.
//
// The gauge of freshness is how long ago everything that had arrived was last known to be in the store. So it is at most Every
// while the store keeps up, the age of the oldest action that is not there while it does not, and grows on when nobody
// can say. That of a Sink means the same, but that it knows at any moment. The histogram of lateness is given the age of that
// action, 0 for none, at each look that found out.
type Lateness struct {
	Every   time.Duration                                            // between two looks; default 5 s: a dozen of them are a minute
	Oldest  func(ctx context.Context) (arrived time.Time, err error) // of the actions that are not in the store; zero: all are
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

// Run looks ever again until ctx ends; it returns nil. What cannot be found out is logged once, until it can.
func (l Lateness) Run(ctx context.Context) error {
	var whole atomic.Pointer[time.Time] // the moment by which all that had arrived was in the store, as far as is known
	began := l.Now()
	whole.Store(&began)
	l.Metrics.tell(func() time.Duration { return l.ago(*whole.Load()) })
	failing := false
	tick := time.NewTicker(cmp.Or(l.Every, 5*time.Second))
	defer tick.Stop()
	for {
		at, err := l.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			whole.Store(&at)
			l.Metrics.since.Observe(l.ago(at).Seconds())
		case !failing:
			l.Log.Warn("features: how late actions are cannot be found out", "error", err)
		}
		failing = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// look returns the moment by which all that had arrived is in the store.
func (l Lateness) look(ctx context.Context) (time.Time, error) {
	began := l.Now()
	oldest, err := l.Oldest(ctx)
	if oldest.IsZero() || oldest.After(began) {
		oldest = began
	}
	return oldest, err
}

// ago is how long ago a moment was.
func (l Lateness) ago(at time.Time) time.Duration { return max(0, l.Now().Sub(at)) }
