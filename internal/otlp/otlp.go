// Package otlp sends spans to a collector over OTLP/HTTP.
//
// Spans wait in a bounded queue. The exporter drops spans if the queue is full, or if the collector does not accept them
// within a timeout. Close sends the queued spans within the same timeout.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/smartfeed/smartfeed/internal/tracing"
)

const (
	maxQueuedSpans = 8192 // further spans are dropped
	maxBatchSpans  = 512  // of a request
	exportInterval = time.Second
	exportTimeout  = 5 * time.Second // of a request with its retries, and of Close
)

// Deps are the dependencies of an Exporter.
type Deps struct {
	Instance string // distinguishes this process from others; "": not reported
	Version  string // of the program
	Log      *slog.Logger
}

// Exporter sends the spans of its Tracer. The caller must call Close.
type Exporter struct {
	ratio     float64
	provider  *sdk.TracerProvider
	sender    *otlptrace.Exporter
	transport *http.Transport
}

// Open validates the configuration, which must have an endpoint, and starts the exporter. It does not connect.
func Open(cfg Config, deps Deps) (*Exporter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	transport := &http.Transport{IdleConnTimeout: time.Minute}
	client, err := cfg.Client.Client(transport)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	// Set every option: the defaults depend on environment variables.
	sender, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(cfg.url()), otlptracehttp.WithHTTPClient(client), otlptracehttp.WithHeaders(cfg.header()),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf), otlptracehttp.WithCompression(otlptracehttp.NoCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: 100 * time.Millisecond, MaxInterval: exportTimeout, MaxElapsedTime: exportTimeout,
		}))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(&logged{SpanExporter: sender, log: deps.Log}, sdk.WithMaxQueueSize(maxQueuedSpans),
			sdk.WithMaxExportBatchSize(maxBatchSpans), sdk.WithBatchTimeout(exportInterval), sdk.WithExportTimeout(exportTimeout)),
		sdk.WithResource(describe(deps)),
		sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample()))) // the tracer decides which traces are sampled
	return &Exporter{cfg.SampleRatio, provider, sender, transport}, nil
}

// describe returns the attributes of all spans.
func describe(deps Deps) *resource.Resource {
	about := []attribute.KeyValue{attribute.String("service.name", "smartfeed"), attribute.String("service.version", deps.Version)}
	if deps.Instance != "" {
		about = append(about, attribute.String("service.instance.id", deps.Instance))
	}
	return resource.NewSchemaless(about...)
}

// Tracer returns a tracer whose spans the exporter sends.
func (e *Exporter) Tracer() *tracing.Tracer { return tracing.New(e.provider, e.ratio) }

// Close sends the queued spans, within the timeout, and stops the exporter. It drops spans that end later.
func (e *Exporter) Close() {
	ctx := context.Background()
	timer := time.AfterFunc(exportTimeout, func() { _ = e.sender.Shutdown(ctx) }) // aborts the request in flight and fails later ones
	_ = e.provider.Shutdown(ctx)                                                  // its only error is that of the sender, which is logged
	timer.Stop()
	e.transport.CloseIdleConnections()
}

// logged logs the first failure of an exporter, and the recovery.
type logged struct {
	sdk.SpanExporter
	log     *slog.Logger
	failing atomic.Bool
}

// ExportSpans returns no error, because the SDK would write each to standard error.
func (l *logged) ExportSpans(ctx context.Context, batch []sdk.ReadOnlySpan) error {
	err := l.SpanExporter.ExportSpans(ctx, batch)
	switch wasFailing := l.failing.Swap(err != nil); {
	case err != nil && !wasFailing:
		l.log.Warn("collector rejects traces; dropping them", "error", err)
	case err == nil && wasFailing:
		l.log.Info("collector accepts traces again")
	}
	return nil
}
