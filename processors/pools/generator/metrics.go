package generator

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/metrics"
	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// measures holds the metrics of a generator.
type measures struct {
	items    *prometheus.CounterVec
	relaxed  *prometheus.CounterVec
	external *prometheus.CounterVec
	rejected *prometheus.CounterVec
	seconds  prometheus.Histogram
}

// newMeasures returns the metrics and registers them unless reg is nil.
func newMeasures(reg prometheus.Registerer) (measures, error) {
	s := metrics.New(reg, "smartfeed_generator_")
	m := measures{
		items:    s.Counters("items_total", "Items in composed chunks, by feed, experiment arm and source.", "feed", "arm", "source"),
		relaxed:  s.Counters("relaxed_chunks_total", "Chunks composed with relaxed caps, by relaxation level.", "feed", "level"),
		external: s.Counters("external_calls_total", "Calls to external candidate sources, to the model and for embeddings, by outcome.", "service", "outcome"),
		rejected: s.Counters("rejected_candidates_total", "Candidates of external sources rejected because they were malformed or over the limit.", "source"),
		seconds: s.Seconds("chunk_duration_seconds", "Time to compose a chunk, including the wait for the user's previous visit, in seconds.",
			0.0005, 12), // 0.5 ms to 1 s: the feed service waits for 150 ms
	}
	return m, s.Err()
}

// composed counts a composed chunk.
func (m measures) composed(c *composition) {
	for i := range c.result.Items {
		m.items.WithLabelValues(c.Feed, c.arm, sourceLabel(c.rules, c.result.Items[i].Source)).Inc()
	}
	if c.result.Relaxed != rules.NotRelaxed {
		m.relaxed.WithLabelValues(c.Feed, string(c.result.Relaxed)).Inc()
	}
}

// called counts the outcome of a call to an external service, or of a lookup of embeddings.
func (m measures) called(service string, err error) {
	m.external.WithLabelValues(service, outcomeOf(err)).Inc()
}

// otherSources is the label of sources that a feed does not name.
const otherSources = "others"

// sourceLabel returns the name of a source that the feed names. All others share one label, because any producer can offer a
// new source.
func sourceLabel(f rules.Feed, s schemas.Source) string {
	if _, named := f.Shares[s]; named || f.Fills(s) {
		return string(s)
	}
	return otherSources
}

// outcomeOf returns the metric label for the outcome of a call.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "success"
	case errors.Is(err, external.ErrOpen):
		return "circuit_open"
	case errors.Is(err, external.ErrBusy):
		return "at_capacity"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "error"
}
