package limit

import (
	"runtime/metrics"
	"sync"
	"time"
)

const (
	every  = 100 * time.Millisecond // interval between two measurements
	shrink = 0.8                    // factor for the peak of requests in flight, on overload
	grow   = 8                      // added to a limit that was reached, without overload

	// enough is the minimum number of goroutines for a meaningful measurement. The scheduler measures one in eight.
	enough = 40
)

// Waits reports how long goroutines waited for a processor since the last call: one in twenty of the measured goroutines
// waited longer than long. of is how many were measured.
type Waits func() (long time.Duration, of uint64)

// Gates limits the requests in flight by class. It is safe for concurrent use.
type Gates struct {
	cfg   Config
	most  int
	fixed map[string]int
	waits Waits
	now   func() time.Time

	mu       sync.Mutex
	classes  map[string]*class
	measured time.Time
}

// class is the state of one class of requests.
type class struct {
	most     int
	fixed    bool // bound is most, regardless of the load
	inFlight int
	peak     int // maximum of inFlight since the last measurement
	bound    int
	met      bool // whether the bound was reached since the last measurement
}

// NewGates returns Gates that admit at most most requests of each class. The classes in fixed have a separate limit, which
// the load does not change.
func NewGates(cfg Config, most int, fixed map[string]int, waits Waits, now func() time.Time) *Gates {
	return &Gates{cfg: cfg, most: most, fixed: fixed, waits: waits, now: now, classes: map[string]*class{}, measured: now()}
}

// Enter admits a request and reports whether it did. The caller must call Leave for an admitted request. Enter never waits:
// the queue for processors is long enough.
func (g *Gates) Enter(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.now(); now.Sub(g.measured) >= every {
		g.measured = now
		g.adapt()
	}
	c := g.class(name)
	if c.inFlight >= c.bound {
		c.met = true
		return false
	}
	c.inFlight++
	c.peak = max(c.peak, c.inFlight)
	return true
}

// Return takes a slot again for a request that left it to wait for something. It reports whether it did; the caller must
// then call Leave as before. An admitted request is rejected only if all slots are taken, not because the machine is
// overloaded.
func (g *Gates) Return(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.class(name)
	if c.inFlight >= c.most {
		return false
	}
	c.inFlight++
	c.peak = max(c.peak, c.inFlight)
	return true
}

// Leave returns the slot of a request.
func (g *Gates) Leave(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.class(name).inFlight--
}

// Bounds returns the current limit of each class whose limit follows the load.
func (g *Gates) Bounds() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	bounds := map[string]int{}
	for name, c := range g.classes {
		if !c.fixed {
			bounds[name] = c.bound
		}
	}
	return bounds
}

func (g *Gates) class(name string) *class {
	c, known := g.classes[name]
	if !known {
		c = &class{most: g.most, bound: g.most}
		if most, fixed := g.fixed[name]; fixed {
			c = &class{most: most, bound: most, fixed: true}
		}
		g.classes[name] = c
	}
	return c
}

// adapt adjusts the limits to the last measurement.
func (g *Gates) adapt() {
	long, of := g.waits()
	late := of >= enough && long > g.cfg.MaxSchedulingLatency
	for _, c := range g.classes {
		switch {
		case c.fixed:
		case late:
			// The requests in flight were too many for the machine.
			c.bound = min(c.bound, max(g.least(), int(shrink*float64(c.peak))))
		case c.met:
			c.bound = min(g.most, c.bound+grow)
		}
		c.peak, c.met = c.inFlight, false
	}
}

func (g *Gates) least() int { return min(g.cfg.MinConcurrency, g.most) }

// SchedulerWaits returns a Waits that measures this program with the metrics of Go's scheduler.
func SchedulerWaits() Waits {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	var before []uint64
	return func() (time.Duration, uint64) {
		metrics.Read(sample)
		if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
			return 0, 0
		}
		h := sample[0].Value.Float64Histogram()
		long, of := longest(h, before)
		before = append(before[:0], h.Counts...)
		return long, of
	}
}

// longest returns the lower bound of the bucket with the 95th percentile of the counts since before, and their number.
func longest(h *metrics.Float64Histogram, before []uint64) (time.Duration, uint64) {
	count := func(i int) uint64 {
		if i < len(before) {
			return h.Counts[i] - before[i]
		}
		return h.Counts[i]
	}
	var of uint64
	for i := range h.Counts {
		of += count(i)
	}
	above := of / 20
	for i := len(h.Counts) - 1; i >= 0; i-- {
		if n := count(i); n > above {
			return time.Duration(max(h.Buckets[i], 0) * float64(time.Second)), of
		} else {
			above -= n
		}
	}
	return 0, of
}
