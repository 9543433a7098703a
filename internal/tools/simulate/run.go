package simulate

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Summary is the result of a simulation.
type Summary struct {
	Run     string  `json:"run"`     // part of the ids of live events
	Loaded  int     `json:"loaded"`  // initial events
	Live    int64   `json:"live"`    // acknowledged live events
	Seconds float64 `json:"seconds"` // duration of the live events
}

// Forever is the duration of a simulation without an end.
const Forever = time.Duration(math.MaxInt64)

// grace limits the wait for events in flight after a simulation is stopped.
const grace = 5 * time.Second

// Run loads the demo, calls loaded unless it is nil, and then publishes live events for the given duration. If ctx is
// canceled during that time, Run stops without an error. With a duration of 0 it only loads the demo. The topics must
// exist.
func Run(ctx context.Context, s topics.Setup, cfg Config, lasting time.Duration, loaded func(context.Context) error) (Summary, error) {
	began := time.Now()
	summary := Summary{Run: strconv.FormatInt(began.UnixMilli(), 36)}
	publisher, err := load.Open(ctx, s)
	if err != nil {
		return summary, err
	}
	defer publisher.Close()
	w := newWorld(cfg)
	summary.Loaded, err = w.load(ctx, s, publisher, began)
	if err == nil && loaded != nil {
		err = loaded(ctx)
	}
	if err != nil || lasting == 0 {
		return summary, err
	}
	var acknowledged atomic.Int64
	task := s.Start("acting", -1)
	err = actFor(ctx, lasting, publisher, newLive(w, summary.Run), func(schemas.Line) { acknowledged.Add(1); task.Add(1) })
	summary.Live, summary.Seconds = acknowledged.Load(), task.Done().Seconds()
	return summary, err
}

// load publishes the initial events and returns their number.
func (w *world) load(ctx context.Context, s topics.Setup, p load.Publisher, now time.Time) (int, error) {
	total := 0
	for _, part := range []struct {
		name   string
		events iter.Seq[schemas.Line]
	}{
		{"users", w.users()},
		{"follows", w.follows()},
		{"pins", w.pins(now)},
	} {
		var events atomic.Int64
		task := s.Start(part.name, -1)
		err := load.All(ctx, p, part.events, func(schemas.Line) { events.Add(1); task.Add(1) })
		task.Done()
		if err != nil {
			return total, fmt.Errorf("simulate %s: %w", part.name, err)
		}
		total += int(events.Load())
	}
	return total, nil
}

// actFor publishes live events for a duration, or until ctx is canceled. It then waits up to grace for events in flight.
func actFor(ctx context.Context, lasting time.Duration, p load.Publisher, l *live, acknowledged func(schemas.Line)) error {
	acting, stop := context.WithTimeout(ctx, lasting)
	defer stop()
	sending, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandon(nil)
	late := time.AfterFunc(Forever, func() { abandon(fmt.Errorf("some events are not acknowledged %s after the end", grace)) })
	defer late.Stop()
	defer context.AfterFunc(acting, func() { late.Reset(grace) })()
	if err := load.All(sending, p, l.all(ticks(acting, l.Rate)), acknowledged); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	return nil
}

// ticks yields the current time at the given rate until ctx is canceled. If perSecond is 0, it does not limit the rate.
func ticks(ctx context.Context, perSecond float64) iter.Seq[time.Time] {
	limit := rate.Inf
	if perSecond > 0 {
		limit = rate.Limit(perSecond)
	}
	const share = 10 // allow bursts of a tenth of a second's events, to catch up on a busy machine
	limiter := rate.NewLimiter(limit, 1+int(perSecond/share))
	return func(yield func(time.Time) bool) {
		for limiter.Wait(ctx) == nil && yield(time.Now()) {
		}
	}
}
