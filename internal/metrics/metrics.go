// Package metrics creates and registers the metrics of a component.
package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Set creates metrics whose names start with a prefix.
type Set struct {
	to     prometheus.Registerer
	prefix string
	errs   []error
}

// New returns a set that registers its metrics at to; nil: nowhere.
func New(to prometheus.Registerer, prefix string) *Set { return &Set{to: to, prefix: prefix} }

// Err returns an error if a metric could not be registered, for example because it exists already.
func (s *Set) Err() error {
	if err := errors.Join(s.errs...); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// register registers a metric.
func register[C prometheus.Collector](s *Set, c C) C {
	if s.to != nil {
		s.errs = append(s.errs, s.to.Register(c))
	}
	return c
}

func (s *Set) opts(name, help string, labels prometheus.Labels) prometheus.Opts {
	return prometheus.Opts{Name: s.prefix + name, Help: help, ConstLabels: labels}
}

// Counter returns a counter.
func (s *Set) Counter(name, help string) prometheus.Counter {
	return register(s, prometheus.NewCounter(prometheus.CounterOpts(s.opts(name, help, nil))))
}

// Counters returns counters by labels.
func (s *Set) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return register(s, prometheus.NewCounterVec(prometheus.CounterOpts(s.opts(name, help, nil)), labels))
}

// Gauge returns a gauge.
func (s *Set) Gauge(name, help string) prometheus.Gauge {
	return register(s, prometheus.NewGauge(prometheus.GaugeOpts(s.opts(name, help, nil))))
}

// Measure registers a gauge with constant labels whose value is computed when it is read.
func (s *Set) Measure(name, help string, labels prometheus.Labels, value func() float64) {
	register(s, prometheus.NewGaugeFunc(prometheus.GaugeOpts(s.opts(name, help, labels)), value))
}

// Flag returns the value of a gauge for a condition: 1 if it holds, otherwise 0.
func Flag(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// Seconds returns a histogram of durations with n buckets. The first bucket ends at the given number of seconds, and each
// further one at twice the previous number.
func (s *Set) Seconds(name, help string, first float64, n int) prometheus.Histogram {
	return register(s, prometheus.NewHistogram(s.seconds(name, help, first, n)))
}

// SecondsBy returns histograms of durations by labels; see Seconds.
func (s *Set) SecondsBy(name, help string, first float64, n int, labels ...string) *prometheus.HistogramVec {
	return register(s, prometheus.NewHistogramVec(s.seconds(name, help, first, n), labels))
}

func (s *Set) seconds(name, help string, first float64, n int) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: s.prefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(first, 2, n)}
}
