package otlp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/otlp"
	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/otlptest"
	"github.com/smartfeed/smartfeed/internal/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config returns a configuration that samples every trace.
func config(endpoint string) otlp.Config {
	cfg := otlp.DefaultConfig()
	cfg.Endpoint, cfg.SampleRatio = endpoint, 1
	return cfg
}

// end ends n spans.
func end(t *testing.T, e *otlp.Exporter, n int) {
	t.Helper()
	for range n {
		_, span := e.Tracer().Start(t.Context(), trace.SpanContext{}, "work", trace.SpanKindInternal)
		tracing.End(span, nil)
	}
}

func TestExporter_SendsSpans(t *testing.T) {
	collector := otlptest.New(t)
	cfg := config(collector.URL)
	cfg.Headers = map[string]secure.Secret{"x-key": "canary"}
	cfg.Client.Token = "bearer-canary"
	e := must.Get(otlp.Open(cfg, otlp.Deps{Instance: "here:1", Version: "v1", Log: slog.New(slog.DiscardHandler)}))(t)
	end(t, e, 3)
	eventually.True(t, "three spans are there", func() bool { return len(collector.Spans()) == 3 })
	end(t, e, 2000) // more than one batch, and sent by Close
	e.Close()
	expect.Equal(t, len(collector.Spans()), 2003, "spans")
	_, header := collector.Posts()
	if header.Get("x-key") != "canary" || header.Get("Authorization") != "Bearer bearer-canary" || header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("header: got %v", header)
	}
	end(t, e, 1) // after Close, without effect
}

// A post to a busy collector is retried.
func TestExporter_RetriesBusyCollector(t *testing.T) {
	collector := otlptest.New(t)
	collector.Says(http.StatusServiceUnavailable)
	var log bytes.Buffer
	e := must.Get(otlp.Open(config(collector.URL), otlp.Deps{Log: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	end(t, e, 1)
	eventually.True(t, "the collector has received two posts", func() bool { n, _ := collector.Posts(); return n >= 2 })
	collector.Says(0)
	e.Close()
	if got := len(collector.Spans()); got != 1 || log.Len() > 0 {
		t.Errorf("got %d spans, want 1, without a warning:\n%s", got, log.String())
	}
}

// A collector that fails or hangs blocks no caller, and Close only for a timeout. The log has one warning, without a secret.
func TestExporter_DropsSpansThatCollectorDoesNotAccept(t *testing.T) {
	hanging, release := hang(t)
	t.Cleanup(release) // after the parallel tests
	refusing := otlptest.New(t)
	refusing.Says(http.StatusUnauthorized)
	for _, test := range []struct{ name, endpoint string }{
		{"no collector", "http://127.0.0.1:1"}, {"refused", refusing.URL}, {"hanging", hanging},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			cfg := config(test.endpoint)
			cfg.Headers, cfg.Client.Token = map[string]secure.Secret{"x-key": "canary"}, "canary"
			e := must.Get(otlp.Open(cfg, otlp.Deps{Log: slog.New(slog.NewTextHandler(&log, nil))}))(t)
			end(t, e, 20_000) // more than the queue has place for
			closing := time.Now()
			e.Close()
			expect.AtMost(t, time.Since(closing), time.Minute, "duration of Close")
			expect.Equal(t, strings.Count(log.String(), "collector rejects traces"), 1, "warnings of dropped spans in %s", log.String())
			expect.Omits(t, log.String(), "canary", "log")
		})
	}
}

// hang starts a server that does not respond until release is called.
func hang(t *testing.T) (url string, release func()) {
	t.Helper()
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	return server.URL, func() { close(done); server.Close() }
}

func TestConfig_ReportsEveryProblem(t *testing.T) {
	cfg := otlp.Config{Endpoint: "http://ada:canary@collector:4318", Headers: map[string]secure.Secret{"a b": "canary"}, SampleRatio: 2}
	err := cfg.Validate()
	for _, want := range []string{"endpoint.", "headers:", "sample_ratio:"} {
		expect.Error(t, err, want, "Validate")
	}
	expect.Omits(t, err.Error(), "canary", "error")
	for _, bad := range []string{"collector:4318", "ftp://collector", "http://", "http://collector?x=y"} {
		cfg := otlp.DefaultConfig()
		cfg.Endpoint = bad
		expect.Fails(t, cfg.Validate(), "endpoint %s", bad)
	}
	must.OK(t, otlp.DefaultConfig().Validate())
}
