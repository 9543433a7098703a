// Package otlp sends spans to a collector over OTLP/HTTP.
//
// Spans wait in a bounded queue. The exporter drops spans if the queue is full, or if the collector does not accept them
// within a timeout, and counts them in smartfeed_tracing_spans_total. Close sends the queued spans within the same timeout.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/smartfeed/smartfeed/internal/tracing"
)

// Deps are the dependencies of an Exporter.
type Deps struct {
	Instance string                // distinguishes this process from others; "": not reported
	Version  string                // of the program
	Metrics  prometheus.Registerer // nil: none
	Log      *slog.Logger          // nil: none
}

// Exporter sends the spans of its Tracer. The caller must call Close.
type Exporter struct {
	cfg       Config
	log       *slog.Logger
	spans     *prometheus.CounterVec
	provider  *sdk.TracerProvider
	batches   sdk.SpanProcessor // the queue and its goroutine
	sender    *otlptrace.Exporter
	transport *http.Transport
	queued    atomic.Int64 // ended spans that are neither sent nor dropped
	closed    atomic.Bool
	failing   atomic.Bool // whether an unavailable collector has been logged
}

// Outcomes of a span, in the label outcome.
const (
	sent   = "sent"
	full   = "queue_full"
	failed = "export_failed"
)

// Open validates the configuration, which must have an endpoint, and starts the exporter. It does not connect.
func Open(cfg Config, deps Deps) (*Exporter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	e := &Exporter{
		cfg: cfg, log: deps.Log, transport: &http.Transport{IdleConnTimeout: time.Minute},
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smartfeed_tracing_spans_total", Help: "Ended spans, by outcome of the export.",
		}, []string{"outcome"}),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	client, err := cfg.Client.Client(e.transport)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	if deps.Metrics != nil {
		if err := deps.Metrics.Register(e.spans); err != nil {
			return nil, fmt.Errorf("tracing: register metrics: %w", err)
		}
	}
	// Set every option: the defaults depend on environment variables.
	e.sender, err = otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(cfg.url()), otlptracehttp.WithHTTPClient(client), otlptracehttp.WithHeaders(cfg.header()),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf), otlptracehttp.WithCompression(otlptracehttp.NoCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: 100 * time.Millisecond, MaxInterval: cfg.ExportTimeout, MaxElapsedTime: cfg.ExportTimeout,
		}))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	e.batches = sdk.NewBatchSpanProcessor(reporter{e}, sdk.WithMaxQueueSize(cfg.MaxQueuedSpans), sdk.WithMaxExportBatchSize(cfg.MaxBatchSpans),
		sdk.WithBatchTimeout(cfg.ExportInterval), sdk.WithExportTimeout(cfg.ExportTimeout))
	e.provider = sdk.NewTracerProvider(
		sdk.WithSpanProcessor(e), sdk.WithResource(describe(cfg, deps)),
		sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample()))) // the tracer decides which traces are sampled
	return e, nil
}

// describe returns the attributes of all spans.
func describe(cfg Config, deps Deps) *resource.Resource {
	about := []attribute.KeyValue{attribute.String("service.name", cfg.ServiceName), attribute.String("service.version", deps.Version)}
	if deps.Instance != "" {
		about = append(about, attribute.String("service.instance.id", deps.Instance))
	}
	return resource.NewSchemaless(about...)
}

// Tracer returns a tracer whose spans the exporter sends.
func (e *Exporter) Tracer() *tracing.Tracer { return tracing.New(e.provider, e.cfg.SampleRatio) }

// Close sends the queued spans, within the timeout, and stops the exporter. It drops spans that end later.
func (e *Exporter) Close() {
	ctx := context.Background()
	e.closed.Store(true)
	timer := time.AfterFunc(e.cfg.ExportTimeout, func() { _ = e.sender.Shutdown(ctx) }) // aborts the request in flight and fails later ones
	_ = e.batches.Shutdown(ctx)                                                         // its only error is that of ctx
	timer.Stop()
	e.count(failed, int(e.queued.Swap(0))) // spans that ended during the shutdown
	e.transport.CloseIdleConnections()
}

// OnStart implements the SDK's SpanProcessor.
func (e *Exporter) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd queues a span unless the queue is full. The queue of the batch processor has the same size, but the processor does
// not report dropped spans.
func (e *Exporter) OnEnd(span sdk.ReadOnlySpan) {
	switch {
	case !span.SpanContext().IsSampled():
	case e.closed.Load():
		e.count(failed, 1)
	case e.queued.Add(1) > int64(e.cfg.MaxQueuedSpans):
		e.queued.Add(-1)
		e.count(full, 1)
	default:
		e.batches.OnEnd(span)
	}
}

// Shutdown implements the SDK's SpanProcessor. It does nothing: Close stops the exporter.
func (e *Exporter) Shutdown(context.Context) error { return nil }

// ForceFlush implements the SDK's SpanProcessor.
func (e *Exporter) ForceFlush(ctx context.Context) error { return e.batches.ForceFlush(ctx) }

func (e *Exporter) count(outcome string, n int) {
	if n > 0 {
		e.spans.WithLabelValues(outcome).Add(float64(n))
	}
}

// reporter sends batches. It counts the spans, and logs the first failure and the recovery. It implements the SDK's
// SpanExporter.
type reporter struct{ e *Exporter }

// ExportSpans returns no error, because the SDK would log each.
func (r reporter) ExportSpans(ctx context.Context, batch []sdk.ReadOnlySpan) error {
	err := r.e.sender.ExportSpans(ctx, batch)
	r.e.queued.Add(int64(-len(batch)))
	if err != nil {
		r.e.count(failed, len(batch))
		if !r.e.failing.Swap(true) {
			r.e.log.Warn("collector rejects traces; dropping them", "error", err)
		}
		return nil
	}
	r.e.count(sent, len(batch))
	if r.e.failing.Swap(false) {
		r.e.log.Info("collector accepts traces again")
	}
	return nil
}

func (r reporter) Shutdown(ctx context.Context) error { return r.e.sender.Shutdown(ctx) }
