// Package otlptest provides a trace collector for tests.
package otlptest

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a received span, with ids in hex.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Error             bool
	Links             int
	Attributes        map[string]string // the text attributes
}

// Collector accepts posted traces.
type Collector struct {
	URL string

	mu    sync.Mutex
	spans []Span
	first *http.Request // the first request, whose body has been read
	says  int           // status; 0: 200
	posts int
}

// New starts a collector that stops with the test.
func New(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// ServeHTTP accepts a post.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts++
	if c.first == nil {
		c.first = r
	}
	if c.says != 0 {
		w.WriteHeader(c.says)
		return
	}
	var data tracepb.TracesData
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &data) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, resource := range data.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, spanOf(s))
			}
		}
	}
}

func spanOf(s *tracepb.Span) Span {
	out := Span{
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
		Name: s.Name, Error: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, Links: len(s.Links), Attributes: map[string]string{},
	}
	for _, a := range s.Attributes {
		out.Attributes[a.Key] = a.Value.GetStringValue()
	}
	return out
}

// Says makes the collector respond to later requests with a status; 0: it accepts them.
func (c *Collector) Says(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.says = status
}

// Posts returns the number of requests and the header of the first.
func (c *Collector) Posts() (n int, header http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == nil {
		return 0, nil
	}
	return c.posts, c.first.Header
}

// Spans returns the received spans.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}
