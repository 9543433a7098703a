package feature

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/metrics"
)

// Metrics are the metrics of a Service and a Sink, one set per process.
type Metrics struct {
	answers  prometheus.Histogram
	degraded *prometheus.CounterVec
	bad      *prometheus.CounterVec
	endToEnd prometheus.Histogram
	open     prometheus.Gauge
	stale    prometheus.Gauge
	late     atomic.Pointer[func() time.Duration] // called at each scrape of Prometheus; nil: nothing is late
}

// NewMetrics registers the metrics. It returns an error if reg has one of them already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	s := metrics.New(reg, "smartfeed_features_")
	m := &Metrics{
		answers:  s.Seconds("request_duration_seconds", "Time to answer a request for features, in seconds.", 0.0005, 12), // 0.5 ms to 1 s
		degraded: s.Counters("degraded_responses_total", "Responses with missing values, by reason.", "reason"),
		bad:      s.Counters("dead_letters_total", "Input records sent to the dead-letter topic, by input topic.", "topic"),
		endToEnd: s.Seconds("end_to_end_latency_seconds",
			"Time from the arrival of the first action of a batch until features include it, in seconds; with Pinot, the lag at each check.",
			0.001, 16), // 1 ms to 33 s; the objective is one second
		open:  s.Gauge("circuit_breaker_open", "1 while the circuit breaker of the feature store is open or half-open, otherwise 0."),
		stale: s.Gauge("definitions_stale", "1 while the definitions file is invalid and the previous definitions stay in use, otherwise 0."),
	}
	s.Measure("lag_seconds", "Age of the oldest action that features may not include yet, in seconds, or 0 if there is none.", nil, m.lag)
	return m, s.Err()
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
