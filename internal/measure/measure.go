// Package measure sends requests at given rates and measures their latency.
//
// The loop is open: request n of a load is due at the start plus n divided by the rate, independent of earlier requests,
// and its latency counts from its due time. If a server stalls for a second, the latency of every request that was due
// in that second shows it. In a closed loop, a slow server would slow down its own measurement (coordinated omission: Gil
// Tene, "How NOT to Measure Latency", Strange Loop 2015; wrk2 does the same). When too many requests are in flight,
// further ones wait, and the wait is part of their latency.
package measure

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrDegraded is returned for a request with an incomplete response. Its latency counts.
var ErrDegraded = errors.New("degraded")

// Load is one kind of request.
type Load struct {
	Name string
	Rate float64 // requests per second, above 0
	// Do sends request n. It is called from many goroutines concurrently and must return when its context is done.
	Do func(ctx context.Context, n int) error
}

// Config limits the duration and concurrency of a run. See DefaultConfig.
type Config struct {
	WarmUp   time.Duration // requests that are due in this time are sent but not counted
	Lasting  time.Duration // after the warm-up
	Timeout  time.Duration // of one request, from its sending
	InFlight int           // maximum concurrent requests of one load; more wait
	Done     func()        // called after each request, from many goroutines; may be nil
}

// DefaultConfig returns the defaults: half a minute after a warm-up of five seconds.
func DefaultConfig() Config {
	return Config{WarmUp: 5 * time.Second, Lasting: 30 * time.Second, Timeout: 10 * time.Second, InFlight: 1024}
}

// Requests returns the total number of requests of a load, including the warm-up.
func (c Config) Requests(rate float64) int {
	return int(rate * (c.WarmUp + c.Lasting).Seconds())
}

// Result is the result of a load after its warm-up.
type Result struct {
	Name     string
	Rate     float64 // requested
	Done     float64 // responses per second, until the last one
	Answered int64   // responses, including incomplete ones
	Degraded int64   // incomplete responses
	Failed   int64
	Failure  error // the error of one of the failed requests
	Missed   int64 // requests that were due and never sent, because ctx was done
	Latency  *Histogram
}

// Run sends the requests of all loads and returns after the last response, or when ctx is done.
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

// running is a load in progress.
type running struct {
	cfg   Config
	load  Load
	began time.Time
	room  chan struct{} // a slot for each request in flight

	requests                   sync.WaitGroup
	latency                    Histogram
	answered, degraded, failed atomic.Int64
	failure                    atomic.Pointer[error]
	last                       atomic.Int64 // time of the last answer, nanoseconds after began
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

// due returns when request n is due.
func (r *running) due(n int) time.Time {
	return r.began.Add(time.Duration(float64(n) / r.load.Rate * float64(time.Second)))
}

// await waits until request n is due and there is a slot for it. It returns false if ctx is done.
func (r *running) await(ctx context.Context, n int) bool {
	if wait := time.Until(r.due(n)); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
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
	raise(&r.last, int64(time.Since(r.began)))
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
