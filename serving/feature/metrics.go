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
	endToEnd prometheus.Histogram
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
			Name:    "smartfeed_features_request_duration_seconds",
			Help:    "Time to answer a request for features, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12), // 0.5 ms to 1 s
		}),
		degraded: counters("reason", "degraded_responses_total", "Responses with missing values, by reason."),
		bad:      counters("topic", "dead_letters_total", "Input records sent to the dead-letter topic, by input topic."),
		expired: prometheus.NewCounter(prometheus.CounterOpts(opts("expired_actions_total",
			"Actions that arrived after their retention had ended and were not written."))),
		endToEnd: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "smartfeed_features_end_to_end_latency_seconds",
			Help:    "Time from the arrival of the first action of a batch until features include it, in seconds; with Pinot, the lag at each check.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16), // 1 ms to 33 s; the objective is one second
		}),
		open:  gauge("circuit_breaker_open", "1 while the circuit breaker of the feature store is open or half-open, otherwise 0."),
		stale: gauge("definitions_stale", "1 while the definitions file is invalid and the previous definitions stay in use, otherwise 0."),
	}
	lag := prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts("lag_seconds",
		"Age of the oldest action that features may not include yet, in seconds, or 0 if there is none.")), m.lag)
	var errs []error
	for _, c := range []prometheus.Collector{m.answers, m.degraded, m.bad, m.expired, lag, m.endToEnd, m.open, m.stale} {
		errs = append(errs, reg.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register feature metrics: %w", err)
	}
	return m, nil
}

// setLate sets the function that the lag gauge calls: the age of the oldest record that waits to be written.
func (m *Metrics) setLate(late func() time.Duration) { m.late.Store(&late) }

func (m *Metrics) lag() float64 {
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
