// Package otlp sends spans to a collector, as protobuf over HTTP (https://opentelemetry.io/docs/specs/otlp/).
//
// It never blocks its callers. A finished span is queued, or dropped if the queue is full. Spans that the collector
// does not accept within a timeout are dropped, too. Both are counted in smartfeed_tracing_spans_total. Close sends the
// queued spans, within the same timeout.
//
// The module otlptrace defines the OTLP messages. This package posts them itself, without its HTTP exporter. That keeps
// gRPC out of the binary and makes the queue and drops observable.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
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
	cfg      Config
	log      *slog.Logger
	provider *sdk.TracerProvider
	sender   *otlptrace.Exporter
	client   *poster
	queue    chan sdk.ReadOnlySpan
	spans    *prometheus.CounterVec
	failing  atomic.Bool // so that an unavailable collector is logged once

	ctx     context.Context // of posts
	abandon context.CancelFunc
	closing chan struct{}
	close   func()
	ended   sync.WaitGroup
}

// Outcomes of a span, in the label outcome.
const (
	sent   = "sent"
	full   = "queue full"
	failed = "not taken"
)

// Open validates the configuration, which must have an endpoint, and starts to send. It does not connect yet.
func Open(cfg Config, deps Deps) (*Exporter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	client, err := newPoster(cfg)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	e := &Exporter{
		cfg: cfg, log: deps.Log, client: client, sender: otlptrace.NewUnstarted(client),
		queue: make(chan sdk.ReadOnlySpan, cfg.Queue), closing: make(chan struct{}),
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smartfeed_tracing_spans_total", Help: "Spans that ended, by what became of them.",
		}, []string{"outcome"}),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if deps.Metrics != nil {
		if err := deps.Metrics.Register(e.spans); err != nil {
			return nil, fmt.Errorf("tracing: register metrics: %w", err)
		}
	}
	e.close = sync.OnceFunc(func() { close(e.closing) })
	e.ctx, e.abandon = context.WithCancel(context.Background())
	e.provider = sdk.NewTracerProvider(
		sdk.WithSpanProcessor(e), sdk.WithResource(describe(cfg, deps)),
		sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample()))) // the tracer decides which traces are sampled
	e.ended.Go(e.run)
	return e, nil
}

// describe returns the attributes of all spans.
func describe(cfg Config, deps Deps) *resource.Resource {
	about := []attribute.KeyValue{attribute.String("service.name", cfg.Service), attribute.String("service.version", deps.Version)}
	if deps.Instance != "" {
		about = append(about, attribute.String("service.instance.id", deps.Instance))
	}
	return resource.NewSchemaless(about...)
}

// Tracer returns a tracer whose spans are sent.
func (e *Exporter) Tracer() *tracing.Tracer { return tracing.New(e.provider, e.cfg.Sample) }

// Close sends the queued spans, for at most the timeout. Spans that end later are dropped.
func (e *Exporter) Close() {
	e.close()
	timer := time.AfterFunc(e.cfg.Timeout, e.abandon)
	e.ended.Wait()
	timer.Stop()
	e.abandon()
	e.client.transport.CloseIdleConnections()
}

// OnStart implements the SDK's SpanProcessor.
func (e *Exporter) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd queues a span, if there is room.
func (e *Exporter) OnEnd(span sdk.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	select {
	case <-e.closing: // no goroutine may receive it anymore
		e.count(failed, 1)
		return
	default:
	}
	select {
	case e.queue <- span:
	default:
		e.count(full, 1)
	}
}

// Shutdown implements the SDK's SpanProcessor. Close does the work.
func (e *Exporter) Shutdown(context.Context) error { return nil }

// ForceFlush implements the SDK's SpanProcessor. Queued spans are sent soon, or by Close.
func (e *Exporter) ForceFlush(context.Context) error { return nil }

func (e *Exporter) count(outcome string, n int) { e.spans.WithLabelValues(outcome).Add(float64(n)) }

// run sends finished spans until Close, when a batch is full or its first span has waited long enough.
func (e *Exporter) run() {
	for {
		select {
		case first := <-e.queue:
			e.send(e.gather(first))
		case <-e.closing:
			e.drain()
			return
		}
	}
}

// gather adds spans to a batch until it is full or must be sent.
func (e *Exporter) gather(first sdk.ReadOnlySpan) []sdk.ReadOnlySpan {
	batch := []sdk.ReadOnlySpan{first}
	timer := time.NewTimer(e.cfg.Every)
	defer timer.Stop()
	for len(batch) < e.cfg.Batch {
		select {
		case span := <-e.queue:
			batch = append(batch, span)
		case <-timer.C:
			return batch
		case <-e.closing:
			return batch
		}
	}
	return batch
}

// drain sends the spans in the queue.
func (e *Exporter) drain() {
	for {
		batch := make([]sdk.ReadOnlySpan, 0, e.cfg.Batch)
		for len(batch) < e.cfg.Batch && len(e.queue) > 0 {
			batch = append(batch, <-e.queue)
		}
		if len(batch) == 0 {
			return
		}
		e.send(batch)
	}
}

// send posts a batch. It logs the first failure and the recovery.
func (e *Exporter) send(batch []sdk.ReadOnlySpan) {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Timeout)
	defer cancel()
	err := e.sender.ExportSpans(ctx, batch)
	if err == nil {
		e.count(sent, len(batch))
		if e.failing.Swap(false) {
			e.log.Info("the collector takes traces again")
		}
		return
	}
	e.count(failed, len(batch))
	if !e.failing.Swap(true) {
		e.log.Warn("the collector does not take traces, they are dropped until it does", "error", err)
	}
}

// poster implements otlptrace.Client.
type poster struct {
	url       string
	header    http.Header
	http      *http.Client
	transport *http.Transport
}

func newPoster(cfg Config) (*poster, error) {
	p := &poster{url: cfg.url(), header: cfg.header(), transport: &http.Transport{IdleConnTimeout: time.Minute}}
	var err error
	p.http, err = cfg.Client.Client(p.transport)
	return p, err
}
