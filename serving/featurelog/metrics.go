package featurelog

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of a Recorder and of Files, one set per process.
type Metrics struct {
	written prometheus.Counter
	dropped prometheus.Counter
	bad     prometheus.Counter
}

// NewMetrics registers the metrics. It returns an error if reg has one of them already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "smartfeed_feature_log_" + name, Help: help})
	}
	m := &Metrics{
		written: counter("records_written_total", "Records written to the feature log, one per entity and response."),
		dropped: counter("records_dropped_total", "Records missing from the feature log because they could not be encoded or sent."),
		bad:     counter("dead_letters_total", "Records of the feature log sent to the dead-letter topic because they could not be read."),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.written, m.dropped, m.bad} {
		errs = append(errs, reg.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register feature log metrics: %w", err)
	}
	return m, nil
}
