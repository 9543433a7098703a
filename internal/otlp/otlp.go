// Package otlp sends spans to a collector, as protobuf over HTTP (https://opentelemetry.io/docs/specs/otlp/).
//
// Nothing waits for it: a span that ends goes into a queue, or is dropped if that is full; what the collector does not take
// within a time-out is dropped as well. Both are counted in smartfeed_tracing_spans_total. Close sends what is there, within
// the same time-out.
//
// What OTLP messages look like knows the module otlptrace. That they are posted from here, and not by its HTTP exporter,
// keeps gRPC out of the binary, and lets queue and drops be seen.
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

// Deps are the collaborators of an Exporter.
type Deps struct {
	Instance string                // tells this process from others; "": it is not told
	Version  string                // of the program
	Metrics  prometheus.Registerer // nil: none
	Log      *slog.Logger          // nil: none
}

// Exporter sends the spans of its Tracer. Close it.
type Exporter struct {
	cfg      Config
	log      *slog.Logger
	provider *sdk.TracerProvider
	sender   *otlptrace.Exporter
	client   *poster
	queue    chan sdk.ReadOnlySpan
	spans    *prometheus.CounterVec
	failing  atomic.Bool // so that a collector that is away is told of once

	ctx     context.Context // of sendings
	abandon context.CancelFunc
	closing chan struct{}
	close   func()
	ended   sync.WaitGroup
}

// What becomes of a span, label outcome.
const (
	sent   = "sent"
	full   = "queue full"
	failed = "not taken"
)

// Open checks the configuration, which must have an endpoint, and begins to send. It connects to nobody yet.
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
		sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample()))) // the tracer decides what begins
	e.ended.Go(e.run)
	return e, nil
}

// describe is what all spans have in common.
func describe(cfg Config, deps Deps) *resource.Resource {
	about := []attribute.KeyValue{attribute.String("service.name", cfg.Service), attribute.String("service.version", deps.Version)}
	if deps.Instance != "" {
		about = append(about, attribute.String("service.instance.id", deps.Instance))
	}
	return resource.NewSchemaless(about...)
}

// Tracer begins traces whose spans are sent.
func (e *Exporter) Tracer() *tracing.Tracer { return tracing.New(e.provider, e.cfg.Sample) }

// Close sends what waits, for at most the time-out; spans that end later are dropped.
func (e *Exporter) Close() {
	e.close()
	timer := time.AfterFunc(e.cfg.Timeout, e.abandon)
	e.ended.Wait()
	timer.Stop()
	e.abandon()
	e.client.transport.CloseIdleConnections()
}

// OnStart is part of the SDK's SpanProcessor.
func (e *Exporter) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd puts a span into the queue, if there is room.
func (e *Exporter) OnEnd(span sdk.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	select {
	case <-e.closing: // nobody may be there to take it
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

// Shutdown is part of the SDK's SpanProcessor; Close does it.
func (e *Exporter) Shutdown(context.Context) error { return nil }

// ForceFlush is part of the SDK's SpanProcessor; what waits is sent soon, or when Close is called.
func (e *Exporter) ForceFlush(context.Context) error { return nil }

func (e *Exporter) count(outcome string, n int) { e.spans.WithLabelValues(outcome).Add(float64(n)) }

// run sends what ends, as soon as a batch is full or its first span has waited, until Close.
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

// gather adds to a batch what comes before it is full, or is to be sent.
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

// drain sends what is in the queue.
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

// send posts a batch. The log has when that begins to fail, and when it works again.
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

// poster is the otlptrace.Client.
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
