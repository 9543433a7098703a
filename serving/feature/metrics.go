package feature

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of a Service and a Sink, one set per process.
type Metrics struct {
	answers  prometheus.Histogram
	degraded *prometheus.CounterVec
	bad      *prometheus.CounterVec
	expired  prometheus.Counter
	since    prometheus.Histogram
	open     prometheus.Gauge
	stale    prometheus.Gauge
	late     atomic.Pointer[func() time.Duration] // called at each scrape of Prometheus; nil: nothing is late
}

// NewMetrics registers the metrics. It returns an error if reg has one of them already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Name: "smartfeed_features_" + name, Help: help}
	}
	counters := func(label, name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), []string{label})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts(opts(name, help)))
	}
	m := &Metrics{
		answers: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "smartfeed_features_answer_seconds",
			Help:    "Time to answer a request for features.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12), // 0.5 ms to 1 s
		}),
		degraded: counters("reason", "degraded_total", "Answers that lack values, by reason."),
		bad:      counters("topic", "dead_letters_total", "Records that could not be read, by topic."),
		expired: prometheus.NewCounter(prometheus.CounterOpts(opts("expired_total",
			"Actions that were older than what is kept when they arrived, and were not written."))),
		since: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "smartfeed_features_since_seconds",
			Help:    "Time from when the first action of a batch arrived to when features count it. With Pinot: how long the oldest action that they lack has waited, at each look.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16), // 1 ms to 33 s; the objective is one second
		}),
		open:  gauge("breaker_open", "1 while the circuit breaker of the feature store is open or half-open, after consecutive answers that lacked values."),
		stale: gauge("definitions_stale", "1 while the file of definitions cannot be read or has mistakes, so that those before it are answered."),
	}
	freshness := prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts("freshness_seconds",
		"How long ago what is being written, or could not be, arrived; 0 when nothing is. With Pinot: how long ago all that had arrived was last known to be there.")), m.freshness)
	var errs []error
	for _, c := range []prometheus.Collector{m.answers, m.degraded, m.bad, m.expired, freshness, m.since, m.open, m.stale} {
		errs = append(errs, reg.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register feature metrics: %w", err)
	}
	return m, nil
}

// setLate sets the function that the freshness gauge calls: the age of the oldest record that waits to be written.
func (m *Metrics) setLate(late func() time.Duration) { m.late.Store(&late) }

func (m *Metrics) freshness() float64 {
	if late := m.late.Load(); late != nil {
		return (*late)().Seconds()
	}
	return 0
}

func (m *Metrics) answered(took time.Duration, degraded []string) {
	m.answers.Observe(took.Seconds())
	for _, reason := range degraded {
		m.degraded.WithLabelValues(reason).Inc()
	}
}

func (m *Metrics) breaker(open bool) {
	m.open.Set(0)
	if open {
		m.open.Set(1)
	}
}
