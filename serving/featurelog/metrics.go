package featurelog

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of a Recorder and of Files, one set per process.
type Metrics struct {
	logged prometheus.Counter
	lost   prometheus.Counter
	bad    prometheus.Counter
}

// NewMetrics registers the metrics. It returns an error if reg has one of them already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "smartfeed_feature_log_" + name, Help: help})
	}
	m := &Metrics{
		logged: counter("records_total", "Entities of answers that are in the log."),
		lost:   counter("lost_total", "Entities of answers that should be in the log, and are not."),
		bad:    counter("dead_letters_total", "Records that could not be read."),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.logged, m.lost, m.bad} {
		errs = append(errs, reg.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register feature log metrics: %w", err)
	}
	return m, nil
}
