package app

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/otlptest"
)

// The trace and span of a caller, as in its header.
const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
)

// traced is an App that sends spans to a collector.
type traced struct {
	*started
	collector *otlptest.Collector
}

// startTraced starts an App that follows the callers' sampling decisions, and samples no other traces.
func startTraced(t *testing.T) traced {
	t.Helper()
	collector := otlptest.New(t)
	cfg := testConfig(t.TempDir())
	cfg.Tracing.Endpoint, cfg.Tracing.SampleRatio = collector.URL, 0
	return traced{start(t, cfg), collector}
}

// send sends a request in a caller's trace, sampled or not, and returns the status code and the body of the response.
func (s traced) send(path, body, trace string, recorded bool) (int, string) {
	s.t.Helper()
	flags := map[bool]string{true: "01", false: "00"}[recorded]
	return s.api().send(path, body, "traceparent", "00-"+trace+"-"+callersSpan+"-"+flags)
}

// publish sends one event.
func (s traced) publish(recorded bool, line string) {
	s.t.Helper()
	if status, answer := s.send("/v1/events", line, callersTrace, recorded); status != http.StatusAccepted {
		s.t.Fatalf("publish: %d %s", status, answer)
	}
}

// nameOf returns the name of a span, with the group if it processed a record.
func nameOf(span otlptest.Span) string {
	if group := span.Attributes["messaging.consumer.group.name"]; group != "" {
		return group + ": " + span.Name
	}
	return span.Name
}

// until waits until a trace has spans with these names and the parents of all spans. It returns all spans of the trace.
func (s traced) until(trace string, names ...string) (spans []otlptest.Span) {
	s.t.Helper()
	eventually.True(s.t, fmt.Sprintf("there are spans %q and their parents", names), func() bool {
		spans = nil
		var there []string
		for _, span := range s.collector.Spans() {
			if span.Trace == trace {
				spans, there = append(spans, span), append(there, nameOf(span))
			}
		}
		missing := slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(there, name) })
		return !missing && len(orphans(spans)) == 0
	})
	return spans
}

// orphans returns the spans whose parent is neither the caller's nor another span. A process may export a span before its parent,
// which ends with the transaction.
func orphans(spans []otlptest.Span) (list []otlptest.Span) {
	known := map[string]bool{callersSpan: true, "": true}
	for _, span := range spans {
		known[span.ID] = true
	}
	for _, span := range spans {
		if !known[span.Parent] {
			list = append(list, span)
		}
	}
	return list
}

// connected checks that the parent of every span is another span of its trace, or the caller's.
func connected(t *testing.T, spans []otlptest.Span) {
	t.Helper()
	for _, span := range orphans(spans) {
		t.Errorf("%s has the unknown parent %s", nameOf(span), span.Parent)
	}
	for _, span := range spans {
		expect.True(t, span.Parent != "", "%s has a parent", nameOf(span))
		expect.False(t, span.Error, "%s is an error: %v", nameOf(span), span.Attributes)
	}
}

// path returns the names from the caller down to the first span with a name.
func path(spans []otlptest.Span, to string) (names []string) {
	byID := map[string]otlptest.Span{}
	at := ""
	for _, span := range spans {
		byID[span.ID] = span
		if nameOf(span) == to && at == "" {
			at = span.ID
		}
	}
	for at != callersSpan && at != "" {
		names = append(names, nameOf(byID[at]))
		at = byID[at].Parent
	}
	slices.Reverse(names)
	return names
}

const follow = `{"stream":"follows","id":"f-%d","time":%d,"actor":"user:ada","verb":"follow","object":"user:bob"}`
const create = `{"stream":"pins","id":"p-%d","time":%d,"actor":"user:bob","verb":"create","object":"pin:%[1]d","title":"a pin"}`

// A sampled event has one trace, from the request to the pool. An event that is not sampled has none.
func TestTrace_ConnectsPublishAndPage(t *testing.T) {
	s := startTraced(t)
	now := time.Now().UnixMicro()
	s.publish(false, fmt.Sprintf(follow, 1, now))
	s.publish(false, fmt.Sprintf(create, 1, now))
	s.wait()
	s.publish(true, fmt.Sprintf(create, 2, now))
	s.wait()
	const pool = "pools: process deliveries"
	spans := s.until(callersTrace, "POST /v1/events", "send", "objects: process pins", "fanout: process publications", pool,
		"materialize: process", "feedstore write")
	connected(t, spans)
	want := []string{"POST /v1/events", "send", "objects: process pins", "fanout: process publications", pool}
	expect.NoDiff(t, path(spans, pool), want, "path to the pool")
	for _, span := range s.collector.Spans() {
		expect.Equal(t, span.Trace, callersTrace, "trace of %s", nameOf(span))
	}

	const pageTrace = "aaf92f3577b34da6a3ce929d0e0e4736"
	status, page := s.send("/v1/users/user:ada/feed", "", pageTrace, true)
	if status != 200 || !strings.Contains(page, "pin:2") {
		t.Fatalf("page: %d %s", status, page)
	}
	spans = s.until(pageTrace, "GET /v1/users/{user}/feed", "generator", "store", "served", "pools: process served",
		"materialize: process", "feedstore write")
	connected(t, spans)
	for _, span := range s.collector.Spans() {
		for name, value := range span.Attributes {
			if strings.Contains(value, "ada") || strings.Contains(value, "bob") || strings.Contains(value, "pin:") {
				t.Errorf("%s contains an id: %s=%s", nameOf(span), name, value)
			}
		}
	}

	status, problem := s.send("/v1/users/user:ada/feed?limit=0", "", pageTrace, true)
	if status != 400 || !strings.Contains(problem, `"trace":"`+pageTrace+`"`) || !strings.Contains(problem, `"request":"`) {
		t.Errorf("a problem names neither trace nor request: %d %s", status, problem)
	}
}
