package featurelog

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/metrics"
)

// Metrics are the metrics of a Recorder and of Files, one set per process.
type Metrics struct {
	written prometheus.Counter
	dropped prometheus.Counter
	bad     prometheus.Counter
}

// NewMetrics registers the metrics. It returns an error if reg has one of them already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	s := metrics.New(reg, "smartfeed_feature_log_")
	return &Metrics{
		written: s.Counter("records_written_total", "Records written to the feature log, one per entity and response."),
		dropped: s.Counter("records_dropped_total", "Records missing from the feature log because they could not be encoded or sent."),
		bad:     s.Counter("dead_letters_total", "Records of the feature log sent to the dead-letter topic because they could not be read."),
	}, s.Err()
}
