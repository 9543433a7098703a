package rows

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meter holds the metrics of a group. All groups of a process share the metrics, which have the label group.
type meter struct {
	rows, deletes, emits                *tally
	commits, messages, skipped          *tally
	deadLetters, misplaced, recovered   *tally
	rate                                rate // of input records
	owned                               *ownedPartitions
	commitTime, processingTime, overall prometheus.Observer
	dropped                             *prometheus.CounterVec // of the group, by reason
	kinds                               kinds
	dropReasons, deadLetterReasons      reasons                // the same counts, readable in this process
	affected                            *prometheus.CounterVec // effects of the group, by name
	effectCounts                        reasons                // the same counts, readable in this process
}

func newMeter(reg prometheus.Registerer, group string) (*meter, error) {
	f := family{reg: reg, group: group}
	m := &meter{
		kinds:          newKinds(),
		rows:           f.counter("rows_written_total", "Rows inserted or updated in the state of the group."),
		deletes:        f.counter("rows_deleted_total", "Rows deleted from the state of the group."),
		emits:          f.counter("records_emitted_total", "Records produced to topics, without the changelog."),
		commits:        f.counter("commits_total", "Committed transactions."),
		messages:       f.counter("records_processed_total", "Input records whose effects are committed."),
		skipped:        f.counter("records_skipped_total", "Input records skipped because their effects are already committed."),
		deadLetters:    f.counter("dead_letters_total", "Input records sent to the dead-letter topic."),
		misplaced:      f.counter("records_misplaced_total", "Input records forwarded to the partition of their key because they were in another one."),
		recovered:      f.counter("changelog_records_read_total", "Changelog records read to recover partitions or to keep standby copies."),
		commitTime:     f.histogram("commit_duration_seconds", "Duration of a commit to Kafka and the local store, in seconds."),
		processingTime: f.histogram("processing_latency_seconds", "Time from the arrival of the first input record of a transaction to its commit, in seconds."),
		overall:        f.histogram("end_to_end_latency_seconds", "Time from the arrival of the original event of the first input record of a transaction to its commit, in seconds."),
		dropped:        f.vector("records_dropped_total", "reason", "Input records, candidates and other entries that a rule dropped, by reason."),
		affected:       f.vector("effects_total", "effect", "Effects of the rules of the group, by effect."),
	}
	m.owned = register(&f, newOwnedPartitions())
	m.owned.addGroup(group)
	if err := errors.Join(f.errs...); err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	return m, nil
}

// tally is a counter whose value this process can read.
type tally struct {
	prometheus.Counter
	n atomic.Int64
}

func (t *tally) count(n int) {
	t.n.Add(int64(n))
	t.Add(float64(n))
}

func (m *meter) counters() Counters {
	return Counters{
		Records: m.messages.n.Load(), Rows: m.rows.n.Load(), Deletes: m.deletes.n.Load(), Emitted: m.emits.n.Load(),
		Commits: m.commits.n.Load(), Skipped: m.skipped.n.Load(), DeadLetters: m.deadLetters.n.Load(),
		Misplaced: m.misplaced.n.Load(), Recovered: m.recovered.n.Load(),
	}
}

// committed counts a committed batch. It counts the records last: a reader that sees them also sees all of their effects.
// Latencies are observed only if active is set, because a generation that is being built has no latency target.
func (m *meter) committed(b *batch, took time.Duration, active bool) {
	deletes, puts := 0, 0
	for i := range b.writes {
		switch w := &b.writes[i]; {
		case w.replaced:
		case w.deleted:
			deletes++
		default:
			puts++
		}
	}
	m.rows.count(puts)
	m.deletes.count(deletes)
	m.emits.count(b.sentEmits())
	m.commits.count(1)
	if active {
		m.commitTime.Observe(took.Seconds())
	}
	if active && b.firstArrival != (arrival{}) {
		now := time.Now().UnixMicro()
		m.processingTime.Observe(seconds(now - b.firstArrival.arrived))
		m.overall.Observe(seconds(now - b.firstArrival.origin))
	}
	m.misplaced.count(b.misplaced)
	m.deadLetters.count(len(b.deadLetters))
	for _, c := range b.counts {
		m.count(c)
	}
	for _, reason := range b.deadLetters {
		m.deadLetterReasons.count(m.kinds.of(reason))
	}
	m.messages.count(b.messages)
	m.rate.add(b.messages, time.Now())
}

// arrival holds when a record arrived, and when the external event arrived that it originates from, in microseconds.
type arrival struct{ arrived, origin int64 }

// seconds converts microseconds to seconds. It returns 0 for negative values, which occur when the broker's clock is ahead.
func seconds(micros int64) float64 { return float64(max(micros, 0)) / 1e6 }

// count adds a count of a callback to the metrics.
func (m *meter) count(c counted) {
	counter, here := m.affected, &m.effectCounts
	if c.dropped {
		counter, here = m.dropped, &m.dropReasons
	}
	counter.WithLabelValues(c.name).Add(float64(c.n))
	here.add(c.name, c.n)
}

// family creates the metrics of one group. It registers each name once per process.
type family struct {
	reg   prometheus.Registerer
	group string
	errs  []error
}

const metricPrefix = "smartfeed_group_"

func (f *family) counter(name, help string) *tally {
	opts := prometheus.CounterOpts{Name: metricPrefix + name, Help: help}
	return &tally{Counter: register(f, prometheus.NewCounterVec(opts, []string{"group"})).WithLabelValues(f.group)}
}

func (f *family) vector(name, label, help string) *prometheus.CounterVec {
	opts := prometheus.CounterOpts{Name: metricPrefix + name, Help: help}
	return register(f, prometheus.NewCounterVec(opts, []string{"group", label})).MustCurryWith(prometheus.Labels{"group": f.group})
}

func (f *family) histogram(name, help string) prometheus.Observer {
	opts := prometheus.HistogramOpts{Name: metricPrefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 2, 14)} // 1 ms to 8 s
	return register(f, prometheus.NewHistogramVec(opts, []string{"group"})).WithLabelValues(f.group)
}

// register registers c. If a collector with its name is registered already, it returns that one.
func register[C prometheus.Collector](f *family, c C) C {
	if f.reg == nil {
		return c
	}
	err := f.reg.Register(c)
	if again, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if before, ok := again.ExistingCollector.(C); ok {
			return before
		}
	}
	if err != nil {
		f.errs = append(f.errs, err)
	}
	return c
}
