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
	rows, deletes, bytes, emits       *tally
	commits, messages, skipped        *tally
	deadLetters, misplaced, recovered *tally
	rate                              rate // of input records
	parts                             *ownedParts
	latency, hop, since               prometheus.Observer
	dropped                           *prometheus.CounterVec // of the group, by reason
	kinds                             kinds
	drops, letters                    reasons                // the same counts, readable in this process
	affected                          *prometheus.CounterVec // effects of the group, by name
	effects                           reasons                // the same counts, readable in this process
}

func newMeter(reg prometheus.Registerer, group string) (*meter, error) {
	f := family{reg: reg, group: group}
	m := &meter{
		kinds:       newKinds(),
		rows:        f.counter("rows_written_total", "Rows put."),
		deletes:     f.counter("rows_deleted_total", "Rows deleted."),
		bytes:       f.counter("bytes_total", "Bytes of keys and values of rows and emitted records."),
		emits:       f.counter("records_emitted_total", "Records emitted to topics."),
		commits:     f.counter("commits_total", "Transactions committed."),
		messages:    f.counter("records_applied_total", "Input records whose effect is durable."),
		skipped:     f.counter("records_skipped_total", "Input records read again and skipped, because they are applied."),
		deadLetters: f.counter("dead_letters_total", "Input records sent to the dead letters."),
		misplaced:   f.counter("records_misplaced_total", "Input records sent on to the partition of their key."),
		recovered:   f.counter("rows_recovered_total", "Changelog records read to recover or follow partitions."),
		latency:     f.histogram("commit_seconds", "Time a transaction takes, local store included."),
		hop:         f.histogram("hop_seconds", "Time from when the first record of a transaction arrived to when its effect was durable."),
		since:       f.histogram("since_seconds", "Time from when the outside event arrived that the first record of a transaction goes back to, to when its effect was durable."),
		dropped:     f.vector("records_dropped_total", "reason", "Input records dropped on purpose, by reason."),
		affected:    f.vector("effects_total", "effect", "What rules of the group did, by name; the group's package says what is counted."),
	}
	m.parts = register(&f, newOwnedParts())
	m.parts.know(group)
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
// Latencies are observed only if active is set, because the catching-up of a generation that is being built has no latency target.
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
	m.bytes.count(len(b.data))
	m.emits.count(len(b.emits))
	m.commits.count(1)
	if active {
		m.latency.Observe(took.Seconds())
	}
	if active && b.first != (begun{}) {
		now := time.Now().UnixMicro()
		m.hop.Observe(seconds(now - b.first.arrived))
		m.since.Observe(seconds(now - b.first.since))
	}
	m.misplaced.count(b.misplaced)
	m.deadLetters.count(len(b.deadLetters))
	for _, c := range b.counts {
		m.count(c)
	}
	for _, reason := range b.deadLetters {
		m.letters.count(m.kinds.of(reason))
	}
	m.messages.count(b.messages)
	m.rate.add(b.messages, time.Now())
}

// begun holds when a record arrived, and when the external event arrived that it originates from, in microseconds.
type begun struct{ arrived, since int64 }

// seconds converts microseconds to seconds. It returns 0 for negative values, which occur when the broker's clock is ahead.
func seconds(micros int64) float64 { return float64(max(micros, 0)) / 1e6 }

// count adds a count of a callback to the metrics.
func (m *meter) count(c counted) {
	counter, here := m.affected, &m.effects
	if c.dropped {
		counter, here = m.dropped, &m.drops
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

const metricPrefix = "smartfeed_rows_"

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
	var again prometheus.AlreadyRegisteredError
	if errors.As(err, &again) {
		if before, ok := again.ExistingCollector.(C); ok {
			return before
		}
	}
	if err != nil {
		f.errs = append(f.errs, err)
	}
	return c
}
