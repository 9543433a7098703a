package generator

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/processors/outside"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// metrics holds the metrics of a generator.
type metrics struct {
	items   *prometheus.CounterVec
	relaxed *prometheus.CounterVec
	outside *prometheus.CounterVec
	refused *prometheus.CounterVec
	seconds prometheus.Histogram
}

// newMetrics returns the metrics and registers them unless reg is nil.
func newMetrics(reg prometheus.Registerer) (metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "smartfeed_generator_" + name, Help: help}, labels)
	}
	m := metrics{
		items:   counter("items_total", "Items of chunks, by feed, arm and source.", "feed", "arm", "source"),
		relaxed: counter("relaxed_total", "Chunks with relaxed caps, by relaxation level.", "feed", "relaxed"),
		outside: counter("outside_total", "Calls to external sources and to the model, by outcome.", "service", "outcome"),
		refused: counter("refused_total", "Candidates of external sources that are malformed or over the limit.", "source"),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "smartfeed_generator_chunk_seconds", Help: "Time to compose a chunk, including the wait for the previous visit.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12), // 0.5 ms to 1 s: the feed service waits for 150 ms
		}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.items, m.relaxed, m.outside, m.refused, m.seconds} {
		if err := reg.Register(c); err != nil {
			return m, err
		}
	}
	return m, nil
}

// composed counts a composed chunk.
func (m metrics) composed(c *composition) {
	for i := range c.result.Items {
		m.items.WithLabelValues(c.Feed, c.arm, sourceLabel(c.rules, c.result.Items[i].Source)).Inc()
	}
	if c.result.Relaxed != rules.NotRelaxed {
		m.relaxed.WithLabelValues(c.Feed, string(c.result.Relaxed)).Inc()
	}
}

// called counts the outcome of a call to an external service.
func (m metrics) called(service string, err error) {
	m.outside.WithLabelValues(service, outcomeOf(err)).Inc()
}

// otherSources is the label of sources that a feed does not name.
const otherSources = "others"

// sourceLabel returns the name of a source that the feed names. All others share one label, because anyone can offer a new
// source.
func sourceLabel(f rules.Feed, s schemas.Source) string {
	if _, named := f.Shares[s]; named {
		return string(s)
	}
	return otherSources
}

// outcomeOf returns the metric label for the outcome of a call.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "answered"
	case errors.Is(err, outside.ErrOpen):
		return "open"
	case errors.Is(err, outside.ErrBusy):
		return "busy"
	case errors.Is(err, context.DeadlineExceeded):
		return "late"
	}
	return "failed"
}
