package hedged

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	reads, extra, wins, compared *prometheus.CounterVec
	stale, failed, changes       prometheus.Counter
	seconds                      *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer, s *Store) (*metrics, error) {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: "smartfeed_feedstore_" + name, Help: help}
	}
	m := &metrics{
		reads: prometheus.NewCounterVec(counter("reads_total", "Reads of the feed stores, as one."), []string{"kind"}),
		extra: prometheus.NewCounterVec(counter("extra_reads_total",
			"Reads of the second store: the first had failed, was stale, slow or late; or to keep it warm."), []string{"reason"}),
		wins:     prometheus.NewCounterVec(counter("wins_total", "Reads that a store answered."), []string{"store"}),
		compared: prometheus.NewCounterVec(counter("compared_total", "Reads answered by both stores: alike or not."), []string{"result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "smartfeed_feedstore_read_seconds", Help: "Time of a read, of whichever store answered it.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12), // 0.5 ms to 1 s: the second store is queried after 100 ms at the latest
		}, []string{"kind"}),
		stale:   prometheus.NewCounter(counter("stale_total", "Reads that were answered with a hole, or by a store that lags.")),
		failed:  prometheus.NewCounter(counter("failed_total", "Reads that both stores failed.")),
		changes: prometheus.NewCounter(counter("changes_total", "How often the stores have changed places.")),
	}
	all := []prometheus.Collector{m.reads, m.extra, m.wins, m.compared, m.stale, m.failed, m.changes, m.seconds}
	for _, store := range []side{primary, standby} {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "smartfeed_feedstore_first", Help: "Whether a store is asked first.", ConstLabels: prometheus.Labels{"store": store.String()},
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
	result := "different"
	if same {
		result = "same"
	}
	m.compared.WithLabelValues(result).Inc()
}
