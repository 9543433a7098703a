package rows

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// inFlight tracks how long the records of a partition have waited that are not durable yet. It is read while a callback or a
// commit hangs, and therefore without the partition's lock. Each field is a time in nanoseconds since the epoch; 0: no
// records.
type inFlight struct {
	pending     atomic.Int64 // accepted records, including the one being processed
	sealed      atomic.Int64 // records being committed
	undelivered atomic.Int64 // records that are in the log but are not delivered, according to the last check
}

// accept is called before a record is processed, under the partition's lock. It reads the clock only for the first record.
func (f *inFlight) accept(now func() time.Time) {
	if f.pending.Load() == 0 {
		f.pending.Store(now().UnixNano())
	}
}

// seal is called when the accepted records are about to be committed, under the partition's lock.
func (f *inFlight) seal() { f.sealed.Store(f.pending.Swap(0)) }

// commit is called when the sealed records are durable.
func (f *inFlight) commit() { f.sealed.Store(0) }

// setUndelivered sets the time since when records in the log are not delivered. The zero time stands for none.
func (f *inFlight) setUndelivered(since time.Time) {
	if since.IsZero() {
		f.undelivered.Store(0)
		return
	}
	f.undelivered.Store(since.UnixNano())
}

// age returns how long the oldest record has waited, or 0 if there is none.
func (f *inFlight) age(now time.Time) time.Duration {
	oldest := now.UnixNano()
	for _, originTime := range []int64{f.pending.Load(), f.sealed.Load(), f.undelivered.Load()} {
		if originTime != 0 {
			oldest = min(oldest, originTime)
		}
	}
	return time.Duration(now.UnixNano() - oldest)
}

// ownedPartitions exports gauges of the partitions that this process owns. A callback that hangs returns no error, and an idle topic
// causes no commits either. Only the age of the records in flight distinguishes the two cases. Partitions of a generation that does
// not emit are left out: each partition counts once, and the lag of the other generation does not matter.
type ownedPartitions struct {
	owned, age *prometheus.Desc

	mu     sync.Mutex
	groups map[string]map[*partition]struct{} // partitions that accept records
}

func newOwnedPartitions() *ownedPartitions {
	const help = "Time since the oldest unprocessed record became ready for the group, in seconds, or 0 if there is none."
	return &ownedPartitions{
		owned:  prometheus.NewDesc(metricPrefix+"partitions_owned", "Partitions that this process owns and processes.", []string{"group"}, nil),
		age:    prometheus.NewDesc(metricPrefix+"oldest_pending_record_age_seconds", help, []string{"group"}, nil),
		groups: map[string]map[*partition]struct{}{},
	}
}

// addGroup creates the gauges of a group, even if this process owns none of its partitions.
func (o *ownedPartitions) addGroup(group string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.groups[group] == nil {
		o.groups[group] = map[*partition]struct{}{}
	}
}

func (o *ownedPartitions) add(p *partition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.groups[p.run.r.topo.base][p] = struct{}{}
}

func (o *ownedPartitions) remove(p *partition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.groups[p.run.r.topo.base], p)
}

// Describe implements prometheus.Collector.
func (o *ownedPartitions) Describe(to chan<- *prometheus.Desc) { to <- o.owned; to <- o.age }

// Collect implements prometheus.Collector.
func (o *ownedPartitions) Collect(to chan<- prometheus.Metric) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for group, parts := range o.groups {
		owned, longest := 0, time.Duration(0)
		for p := range parts {
			if p.emission.active.Load() {
				owned++
				longest = max(longest, p.inFlight.age(now))
			}
		}
		to <- prometheus.MustNewConstMetric(o.owned, prometheus.GaugeValue, float64(owned), group)
		to <- prometheus.MustNewConstMetric(o.age, prometheus.GaugeValue, longest.Seconds(), group)
	}
}
