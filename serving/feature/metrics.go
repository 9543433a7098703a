package feature

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the counters of a Service and a Sink, one set a process.
type Metrics struct {
	answers   prometheus.Histogram
	degraded  *prometheus.CounterVec
	rows      *prometheus.CounterVec
	bad       *prometheus.CounterVec
	freshness prometheus.Gauge
}

// NewMetrics registers the metrics. It fails when reg has one of them already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		answers: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "smartfeed_features_answer_seconds",
			Help:    "Time to answer a request for features.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12), // 0.5 ms to 1 s
		}),
		degraded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smartfeed_features_degraded_total",
			Help: "Answers that lack values, by reason.",
		}, []string{"reason"}),
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smartfeed_features_rows_total",
			Help: "Records written to the feature store, by topic.",
		}, []string{"topic"}),
		bad: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smartfeed_features_dead_letters_total",
			Help: "Records that could not be read, by topic.",
		}, []string{"topic"}),
		freshness: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "smartfeed_features_freshness_seconds",
			Help: "Age of the newest action of the last batch when the batch was on disk.",
		}),
	}
	if err := errors.Join(reg.Register(m.answers), reg.Register(m.degraded), reg.Register(m.rows), reg.Register(m.bad), reg.Register(m.freshness)); err != nil {
		return nil, fmt.Errorf("register feature metrics: %w", err)
	}
	return m, nil
}

func (m *Metrics) answered(took time.Duration, degraded []string) {
	m.answers.Observe(took.Seconds())
	for _, reason := range degraded {
		m.degraded.WithLabelValues(reason).Inc()
	}
}
