package hedged

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	extra, answered, compared *prometheus.CounterVec
	stale, failed, failovers  prometheus.Counter
	seconds                   *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer, s *Store) (*metrics, error) {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: "smartfeed_feedstore_" + name, Help: help}
	}
	m := &metrics{
		extra: prometheus.NewCounterVec(counter("extra_reads_total",
			"Reads of the store that is not preferred, by reason."), []string{"reason"}),
		answered: prometheus.NewCounterVec(counter("answered_reads_total", "Reads by the store whose response was returned."), []string{"store"}),
		compared: prometheus.NewCounterVec(counter("comparisons_total", "Comparisons of the responses of both stores, by outcome."), []string{"outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "smartfeed_feedstore_read_duration_seconds", Help: "Duration of a read with hedging, by kind of read, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12), // 0.5 ms to 1 s: the second store is queried after 100 ms at the latest
		}, []string{"kind"}),
		stale:     prometheus.NewCounter(counter("stale_reads_total", "Reads answered with missing items or by a lagging store.")),
		failed:    prometheus.NewCounter(counter("failed_reads_total", "Reads that failed in all stores.")),
		failovers: prometheus.NewCounter(counter("failovers_total", "Changes of the preferred store, in both directions.")),
	}
	all := []prometheus.Collector{m.extra, m.answered, m.compared, m.stale, m.failed, m.failovers, m.seconds}
	for _, store := range []side{primary, standby} {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "smartfeed_feedstore_preferred", Help: "1 for the store that is read first, otherwise 0.", ConstLabels: prometheus.Labels{"store": store.String()},
		}, func() float64 {
			if s.balance.isFirst(store) {
				return 1
			}
			return 0
		}))
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) compare(same bool) {
	outcome := "different"
	if same {
		outcome = "same"
	}
	m.compared.WithLabelValues(outcome).Inc()
}
