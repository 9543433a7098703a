package limit

import (
	"runtime/metrics"
	"sync"
	"time"
)

const (
	look   = 100 * time.Millisecond // between two looks at the machine
	shrink = 0.8                    // of what was under way, when it is too much
	grow   = 8                      // places, when a bound was met and there was time for more

	// enough goroutines must have waited for one in twenty of them to say something. The scheduler measures one in eight.
	enough = 40
)

// Waits tells how long goroutines waited for a processor since it was last asked: one in twenty waited longer than the
// duration, of so many in all.
type Waits func() (long time.Duration, of uint64)

// Gates bound what is under way, by class. They are safe for concurrent use.
type Gates struct {
	cfg   Config
	most  int
	waits Waits
	now   func() time.Time

	mu      sync.Mutex
	classes map[string]*class
	looked  time.Time
}

// class is what is under way of one class of requests.
type class struct {
	under int
	peak  int // of under since the last look
	bound int
	met   bool // the bound, since the last look
}

// NewGates lets at most so many requests of each class in. now may be nil, for time.Now, and waits for those of this
// program.
func NewGates(cfg Config, most int, waits Waits, now func() time.Time) *Gates {
	if now == nil {
		now = time.Now
	}
	if waits == nil {
		waits = schedulerWaits()
	}
	return &Gates{cfg: cfg, most: most, waits: waits, now: now, classes: map[string]*class{}, looked: now()}
}

// Enter lets a request in; Leave must follow then. It never waits: the queue that there is, that for processors, is long
// enough.
func (g *Gates) Enter(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.now(); now.Sub(g.looked) >= look {
		g.looked = now
		g.adapt()
	}
	c := g.class(name)
	if c.under >= c.bound {
		c.met = true
		return false
	}
	c.under++
	c.peak = max(c.peak, c.under)
	return true
}

// Return takes a place again that was left, to wait for something, and Leave must follow then as before. Who was let in once
// is refused only if there is no place at all, not because it has become late for new ones.
func (g *Gates) Return(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.class(name)
	if c.under >= g.most {
		return false
	}
	c.under++
	c.peak = max(c.peak, c.under)
	return true
}

// Leave gives a place back.
func (g *Gates) Leave(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.class(name).under--
}

// Bounds returns how many requests of each class may be under way now.
func (g *Gates) Bounds() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	bounds := map[string]int{}
	for name, c := range g.classes {
		bounds[name] = c.bound
	}
	return bounds
}

func (g *Gates) class(name string) *class {
	c, known := g.classes[name]
	if !known {
		c = &class{bound: g.most}
		g.classes[name] = c
	}
	return c
}

// adapt moves the bounds by what has happened since the last look.
func (g *Gates) adapt() {
	long, of := g.waits()
	late := of >= enough && long > g.cfg.Wait
	for _, c := range g.classes {
		switch {
		case late:
			// What was under way was too much; what could have been on top of it would be, too.
			c.bound = min(c.bound, max(g.least(), int(shrink*float64(c.peak))))
		case c.met:
			c.bound = min(g.most, c.bound+grow)
		}
		c.peak, c.met = c.under, false
	}
}

func (g *Gates) least() int { return min(g.cfg.Least, g.most) }

// schedulerWaits reads what Go's scheduler measures.
func schedulerWaits() Waits {
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

// longest returns the lower end of the bucket that the nineteenth of twenty is in, of what was counted since before.
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
