package feed

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/metrics"
)

// measures are the metrics of the service. The kinds of requests are visit, peek, older, list, related and why.
type measures struct {
	seconds  *prometheus.HistogramVec
	degraded *prometheus.CounterVec
}

func newMeasures(reg prometheus.Registerer, gates ...*gate) (*measures, error) {
	s := metrics.New(reg, "smartfeed_feed_")
	m := &measures{
		seconds:  s.SecondsBy("request_duration_seconds", "Time to answer a request, by kind of request, in seconds.", 0.0005, 12, "kind"), // 0.5 ms to 1 s
		degraded: s.Counters("degraded_responses_total", "Degraded responses, by reason.", "reason"),
	}
	for _, g := range gates {
		s.Measure("calls_in_flight", "Calls to the dependency that are in flight.", prometheus.Labels{"dependency": g.name},
			func() float64 { return float64(len(g.slots)) })
	}
	return m, s.Err()
}

// time starts a timer. The returned function records the elapsed time.
func (m *measures) time(kind string, now func() time.Time) (stop func()) {
	start := now()
	return func() { m.seconds.WithLabelValues(kind).Observe(now().Sub(start).Seconds()) }
}

// count counts the reasons why an answer is degraded.
func (m *measures) count(degraded []string) {
	for _, reason := range degraded {
		m.degraded.WithLabelValues(reason).Inc()
	}
}
