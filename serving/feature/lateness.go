package feature

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/smartfeed/smartfeed/internal/periodic"
)

// Lateness measures the lag of actions in a store that consumes the topic itself, without a Sink.
//
// The freshness gauge is the time since all arrived actions were last known to be in the store. While the store keeps
// up, it is at most Every. While it does not, the gauge is the age of the oldest action that is not in the store. It
// keeps growing while that is unknown. The gauge of a Sink has the same meaning, but is exact at any moment. After each
// successful check, the lateness histogram observes the age of that action, 0 for none.
type Lateness struct {
	Every   time.Duration                                            // interval between two checks; default 5 s: a dozen of them are a minute
	Oldest  func(ctx context.Context) (arrived time.Time, err error) // of the actions that are not in the store; zero: all are
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

// Run checks periodically until ctx is done, and returns nil. It logs the first of several failed checks in a row.
func (l Lateness) Run(ctx context.Context) error {
	var complete atomic.Pointer[time.Time] // time up to which all arrived actions are known to be in the store
	began := l.Now()
	complete.Store(&began)
	l.Metrics.setLate(func() time.Duration { return l.ago(*complete.Load()) })
	failing := false
	return periodic.Run(ctx, cmp.Or(l.Every, 5*time.Second), func() error {
		at, err := l.check(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			complete.Store(&at)
			l.Metrics.endToEnd.Observe(l.ago(at).Seconds())
		case !failing:
			l.Log.Warn("cannot measure the lag of features", "error", err)
		}
		failing = err != nil
		return nil
	})
}

// check returns the time up to which all arrived actions are in the store.
func (l Lateness) check(ctx context.Context) (time.Time, error) {
	began := l.Now()
	oldest, err := l.Oldest(ctx)
	if oldest.IsZero() || oldest.After(began) {
		oldest = began
	}
	return oldest, err
}

// ago returns the time since at.
func (l Lateness) ago(at time.Time) time.Duration { return max(0, l.Now().Sub(at)) }
