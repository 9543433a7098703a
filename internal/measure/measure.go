// Package measure makes requests at stated rates and tells how long they took.
//
// The loop is open: request n of a load is due at the start plus n divided by the rate, whatever became of those before
// it, and its latency counts from when it was due. A server that stalls for a second so shows in every request that was
// due in that second, and not in the one alone that met it: otherwise the slow server slows down its own measurement
// (coordinated omission: Gil Tene, "How NOT to Measure Latency", Strange Loop 2015; wrk2 does the same). Requests wait
// here when too many are under way, and the wait is part of their latency.
package measure

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/smartfeed/smartfeed/internal/pause"
)

// ErrDegraded is returned by a request that was answered, but not with all that was asked for. Its latency counts.
var ErrDegraded = errors.New("degraded")

// Load is one kind of request.
type Load struct {
	Name string
	Rate float64 // requests a second, above 0
	// Do makes request n. It is called from many goroutines at once and returns by the end of its context.
	Do func(ctx context.Context, n int) error
}

// Config says how long and how much at once. See DefaultConfig.
type Config struct {
	WarmUp   time.Duration // requests that are due in it are made and not counted
	Lasting  time.Duration // after the warm-up
	Timeout  time.Duration // of one request, from when it is made
	InFlight int           // requests of one load at once; more wait
	Done     func()        // called after each request, from many goroutines; nil: nobody is told
}

// DefaultConfig returns the defaults: half a minute after five seconds.
func DefaultConfig() Config {
	return Config{WarmUp: 5 * time.Second, Lasting: 30 * time.Second, Timeout: 10 * time.Second, InFlight: 1024}
}

// Requests is how many requests a load makes in all, the warm-up included.
func (c Config) Requests(rate float64) int {
	return int(rate * (c.WarmUp + c.Lasting).Seconds())
}

// Result is what came of a load after its warm-up.
type Result struct {
	Name     string
	Rate     float64 // asked for
	Done     float64 // answered a second, over the time until the last answer
	Answered int64   // with or without all that was asked for
	Degraded int64   // of those
	Failed   int64
	Failure  error // one of them
	Missed   int64 // that were due and never made, because ctx ended
	Latency  *Histogram
}

// Run makes the requests of all loads and returns when the last is answered, or ctx has ended.
func Run(ctx context.Context, cfg Config, loads ...Load) []Result {
	results := make([]Result, len(loads))
	began := time.Now()
	var all sync.WaitGroup
	for i, l := range loads {
		all.Go(func() {
			r := &running{cfg: cfg, load: l, began: began, room: make(chan struct{}, cfg.InFlight)}
			results[i] = r.run(ctx)
		})
	}
	all.Wait()
	return results
}

// running is one load under way.
type running struct {
	cfg   Config
	load  Load
	began time.Time
	room  chan struct{} // a place for each request under way

	requests                   sync.WaitGroup
	latency                    Histogram
	answered, degraded, failed atomic.Int64
	failure                    atomic.Pointer[error]
	last                       atomic.Int64 // when the last answer came, nanoseconds after began
}

func (r *running) run(ctx context.Context) Result {
	total, made := r.cfg.Requests(r.load.Rate), 0
	for n := range total {
		if !r.await(ctx, n) {
			break
		}
		made++
		r.requests.Go(func() {
			r.request(ctx, n)
			<-r.room
		})
	}
	r.requests.Wait()
	return r.result(int64(total - made))
}

// due is when request n should begin.
func (r *running) due(n int) time.Time {
	return r.began.Add(time.Duration(float64(n) / r.load.Rate * float64(time.Second)))
}

// await returns when request n is due and there is room for it; false: ctx has ended.
func (r *running) await(ctx context.Context, n int) bool {
	if !pause.For(ctx, time.Until(r.due(n))) {
		return false
	}
	select {
	case r.room <- struct{}{}:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (r *running) request(ctx context.Context, n int) {
	limited, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	err := r.load.Do(limited, n)
	took := time.Since(r.due(n))
	if r.cfg.Done != nil {
		r.cfg.Done()
	}
	if r.due(n).Sub(r.began) < r.cfg.WarmUp {
		return
	}
	if err != nil && !errors.Is(err, ErrDegraded) {
		r.failed.Add(1)
		r.failure.CompareAndSwap(nil, &err)
		return
	}
	if err != nil {
		r.degraded.Add(1)
	}
	r.answered.Add(1)
	r.latency.Add(took)
	for at := int64(time.Since(r.began)); ; {
		last := r.last.Load()
		if last >= at || r.last.CompareAndSwap(last, at) {
			return
		}
	}
}

func (r *running) result(missed int64) Result {
	res := Result{
		Name: r.load.Name, Rate: r.load.Rate, Answered: r.answered.Load(), Degraded: r.degraded.Load(),
		Failed: r.failed.Load(), Missed: missed, Latency: &r.latency,
	}
	if err := r.failure.Load(); err != nil {
		res.Failure = *err
	}
	if span := max(time.Duration(r.last.Load())-r.cfg.WarmUp, r.cfg.Lasting); res.Answered > 0 {
		res.Done = float64(res.Answered) / span.Seconds()
	}
	return res
}
