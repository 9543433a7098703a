package rows

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meter counts what a group does. All groups of a process share the metrics; the label group tells them apart.
type meter struct {
	rows, deletes, bytes, emits       *tally
	commits, messages, skipped        *tally
	deadLetters, misplaced, recovered *tally
	rate                              rate // of messages
	owned                             prometheus.Gauge
	waits                             *waits
	latency, hop, since               prometheus.Observer
	dropped                           *prometheus.CounterVec // of the group, by reason
	kinds                             kinds
	drops, letters                    reasons                // the same for this process to read
	affected                          *prometheus.CounterVec // effects of the group, by name
	effects                           reasons                // the same for this process to read
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
		owned:       f.gauge("partitions_owned", "Partitions recovered and worked on."),
		latency:     f.histogram("commit_seconds", "Time a transaction takes, local store included."),
		hop:         f.histogram("hop_seconds", "Time from when the first record of a transaction arrived to when its effect was durable."),
		since:       f.histogram("since_seconds", "Time from when the outside event arrived that the first record of a transaction goes back to, to when its effect was durable."),
		dropped:     f.vector("records_dropped_total", "reason", "Input records dropped on purpose, by reason."),
		affected:    f.vector("effects_total", "effect", "What rules of the group did, by name; the group's package says what is counted."),
	}
	m.waits = register(&f, newWaits())
	m.waits.know(group)
	if err := errors.Join(f.errs...); err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	return m, nil
}

// tally is a counter that this process can read as well.
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

// committed counts a committed batch. Its records come last: who sees them counted sees all that they did counted. Latencies are
// observed for active generations only: nobody waits for what a silent one catches up with.
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
	if b.first != (begun{}) {
		now := time.Now().UnixMicro()
		m.hop.Observe(seconds(now - b.first.arrived))
		m.since.Observe(seconds(now - b.first.since))
	}
	m.misplaced.count(b.misplaced)
	m.deadLetters.count(len(b.letters))
	for _, c := range b.counts {
		m.told(c)
	}
	for _, reason := range b.letters {
		m.letters.count(m.kinds.of(reason))
	}
	m.messages.count(b.messages)
	m.rate.add(b.messages, time.Now())
}

// begun is when a record arrived, and when the outside event did that it goes back to, in microseconds.
type begun struct{ arrived, since int64 }

// seconds of so many microseconds; 0 of less than none, where the brokers' clock is ahead of this one.
func seconds(micros int64) float64 { return float64(max(micros, 0)) / 1e6 }

// told counts what a callback counted.
func (m *meter) told(c counted) {
	counter, here := m.affected, &m.effects
	if c.dropped {
		counter, here = m.dropped, &m.drops
	}
	counter.WithLabelValues(c.name).Add(float64(c.n))
	here.add(c.name, c.n)
}

// family makes the metrics of one group, and registers each name once a process.
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

func (f *family) gauge(name, help string) prometheus.Gauge {
	opts := prometheus.GaugeOpts{Name: metricPrefix + name, Help: help}
	return register(f, prometheus.NewGaugeVec(opts, []string{"group"})).WithLabelValues(f.group)
}

func (f *family) histogram(name, help string) prometheus.Observer {
	opts := prometheus.HistogramOpts{Name: metricPrefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 2, 14)} // 1 ms to 8 s
	return register(f, prometheus.NewHistogramVec(opts, []string{"group"})).WithLabelValues(f.group)
}

// register returns the collector that is registered under c's name, c itself if it is the first.
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
