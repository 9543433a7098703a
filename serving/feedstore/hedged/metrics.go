package hedged

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/metrics"
)

type measures struct {
	extra, answered, compared *prometheus.CounterVec
	stale, failed, failovers  prometheus.Counter
	seconds                   *prometheus.HistogramVec
}

func newMeasures(reg prometheus.Registerer, b *balance) (*measures, error) {
	s := metrics.New(reg, "smartfeed_feedstore_")
	m := &measures{
		extra:    s.Counters("extra_reads_total", "Reads of the store that is not preferred, by reason.", "reason"),
		answered: s.Counters("answered_reads_total", "Reads by the store whose response was returned.", "store"),
		compared: s.Counters("comparisons_total", "Comparisons of the responses of both stores, by outcome.", "outcome"),
		seconds: s.SecondsBy("read_duration_seconds", "Duration of a read with hedging, by kind of read, in seconds.",
			0.0005, 12, "kind"), // 0.5 ms to 1 s: the second store is queried after 100 ms at the latest
		stale:     s.Counter("stale_reads_total", "Reads answered with missing items or by a lagging store."),
		failed:    s.Counter("failed_reads_total", "Reads that failed in all stores."),
		failovers: s.Counter("failovers_total", "Changes of the preferred store, in both directions."),
	}
	for _, store := range []side{primary, standby} {
		s.Measure("preferred", "1 for the store that is read first, otherwise 0.", prometheus.Labels{"store": store.String()},
			func() float64 { return metrics.Flag(b.isFirst(store)) })
	}
	return m, s.Err()
}

func (m *measures) compare(same bool) {
	outcome := "different"
	if same {
		outcome = "same"
	}
	m.compared.WithLabelValues(outcome).Inc()
}
