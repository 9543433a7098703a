package feed

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of the service. The kinds of requests are visit, peek, older, list, related and why.
type metrics struct {
	seconds  *prometheus.HistogramVec
	degraded *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, gates map[string]*gate) (*metrics, error) {
	m := &metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "smartfeed_feed_request_duration_seconds", Help: "Time to answer a request, by kind of request, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12), // 0.5 ms to 1 s
		}, []string{"kind"}),
		degraded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smartfeed_feed_degraded_responses_total", Help: "Degraded responses, by reason.",
		}, []string{"reason"}),
	}
	all := []prometheus.Collector{m.seconds, m.degraded}
	for name, g := range gates {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "smartfeed_feed_calls_in_flight", Help: "Calls to the dependency that are in flight.",
			ConstLabels: prometheus.Labels{"dependency": name},
		}, func() float64 { return float64(g.inFlight()) }))
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// time starts a timer. The returned function records the elapsed time.
func (m *metrics) time(kind string, now func() time.Time) (stop func()) {
	start := now()
	return func() { m.seconds.WithLabelValues(kind).Observe(now().Sub(start).Seconds()) }
}

// count counts the reasons why an answer is degraded.
func (m *metrics) count(degraded []string) {
	for _, reason := range degraded {
		m.degraded.WithLabelValues(reason).Inc()
	}
}
