package rows

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// hand is what a partition has been given and not yet made durable, as far as its age goes. It is asked while a callback or
// a commit hangs, so without the partition's lock. Each is since when, in nanoseconds since the epoch, 0: there is none.
type hand struct {
	pending atomic.Int64 // records taken, the one that is being worked off among them
	sealed  atomic.Int64 // records being committed
	left    atomic.Int64 // records that lie ready, by a look at the log, and do not come
}

// take is called before a record is worked off, under the partition's lock. The clock is asked for the first record alone.
func (h *hand) take(now func() time.Time) {
	if h.pending.Load() == 0 {
		h.pending.Store(now().UnixNano())
	}
}

// seal is called when what was taken is to be committed, under the partition's lock.
func (h *hand) seal() { h.sealed.Store(h.pending.Swap(0)) }

// land is called when it is durable.
func (h *hand) land() { h.sealed.Store(0) }

// leaves sets the time since which records lie ready that do not come; zero: none do.
func (h *hand) leaves(since time.Time) {
	if since.IsZero() {
		h.left.Store(0)
		return
	}
	h.left.Store(since.UnixNano())
}

// age returns how long the oldest record has waited, 0 if there is none.
func (h *hand) age(now time.Time) time.Duration {
	oldest := now.UnixNano()
	for _, since := range []int64{h.pending.Load(), h.sealed.Load(), h.left.Load()} {
		if since != 0 {
			oldest = min(oldest, since)
		}
	}
	return time.Duration(now.UnixNano() - oldest)
}

// waits tells Prometheus how long the groups of a process have had records that they have not worked off. A callback that hangs
// returns no error, and a topic without records makes no commits either: only the records in hand tell one from the other.
type waits struct {
	desc *prometheus.Desc

	mu     sync.Mutex
	groups map[string]map[*part]struct{} // partitions that take records
}

func newWaits() *waits {
	const help = "For how long the group has not worked off the oldest record that it was given, or that lies ready for it; 0 when there is none."
	return &waits{
		desc:   prometheus.NewDesc(metricPrefix+"waiting_seconds", help, []string{"group"}, nil),
		groups: map[string]map[*part]struct{}{},
	}
}

// know makes the gauge exist for a group, also one without partitions here.
func (w *waits) know(group string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups[group] == nil {
		w.groups[group] = map[*part]struct{}{}
	}
}

func (w *waits) enter(p *part) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups[p.w.r.topo.base][p] = struct{}{}
}

func (w *waits) leave(p *part) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.groups[p.w.r.topo.base], p)
}

// Describe is part of prometheus.Collector.
func (w *waits) Describe(to chan<- *prometheus.Desc) { to <- w.desc }

// Collect is part of prometheus.Collector. For a silent generation nobody waits.
func (w *waits) Collect(to chan<- prometheus.Metric) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for group, parts := range w.groups {
		longest := time.Duration(0)
		for p := range parts {
			if p.activity.emitting() {
				longest = max(longest, p.hand.age(now))
			}
		}
		to <- prometheus.MustNewConstMetric(w.desc, prometheus.GaugeValue, longest.Seconds(), group)
	}
}
