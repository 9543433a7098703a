// Package tracing creates OpenTelemetry spans: for requests, for the processing of records by groups, and for calls
// that answers depend on.
//
// The sampling decision of a trace is made once, at its start: by the caller's or producer's traceparent
// (https://www.w3.org/TR/trace-context/), or at random. Requests between processes and records carry the decision, so a
// trace is complete or absent. Only the start of a trace needs a Tracer. Start creates a child of the span in the context.
// Without a span, it costs only a lookup in the context.
//
// Names and attributes follow the semantic conventions for HTTP and for messaging
// (https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/). The span of a single processed record is a
// child of its sender's span. The span of a batch is linked to the spans of all senders.
// No attribute contains the id of a user or an object, a key, a path or the text of an error.
package tracing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Header is the name of the trace context header, in HTTP and in Kafka.
const Header = "traceparent"

// scope is the instrumentation scope of the spans.
const scope = "github.com/smartfeed/smartfeed"

// Tracer starts traces. A nil Tracer starts none.
type Tracer struct {
	provider trace.TracerProvider
	share    float64
}

// New returns a tracer with the provider's spans. The provider must sample spans without a parent. share is the share
// of new traces that is sampled, 0 to 1.
func New(provider trace.TracerProvider, share float64) *Tracer { return &Tracer{provider, share} }

// Decide makes the sampling decision for a request or record: that of the sender, or a random one if there is no sender.
// It does not allocate, so requests that are not sampled are cheap.
func (t *Tracer) Decide(sender trace.SpanContext) bool {
	switch {
	case t == nil:
		return false
	case sender.IsValid():
		return sender.IsSampled()
	}
	return rand.Float64() < t.share
}

// Unrecorded returns a context of a trace that is not sampled. Later steps use this decision.
func Unrecorded(ctx context.Context, sender trace.SpanContext) context.Context {
	if !sender.IsValid() {
		var cfg trace.SpanContextConfig
		binary.NativeEndian.PutUint64(cfg.TraceID[:], rand.Uint64()|1) // never all zero, which is invalid
		binary.NativeEndian.PutUint64(cfg.SpanID[:], rand.Uint64()|1)
		sender = trace.NewSpanContext(cfg)
	}
	return trace.ContextWithRemoteSpanContext(ctx, sender)
}

// Start starts a span that Decide has sampled: a child of parent, or a new trace if parent is invalid. A nil tracer
// returns ctx and a span that does not record.
func (t *Tracer) Start(ctx context.Context, parent trace.SpanContext, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	if t == nil {
		return ctx, none
	}
	ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	return t.provider.Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// maxLinks limits the links of a batch.
const maxLinks = 64

// Batch starts the span of a batch of records, given the sampled spans of their senders. Without any, the span does not
// record. It is a child of the first and, if there are more, linked to each of the first 64.
func (t *Tracer) Batch(ctx context.Context, senders []trace.SpanContext, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	if t == nil || len(senders) == 0 {
		return ctx, none
	}
	if len(senders) == 1 {
		return t.Start(ctx, senders[0], name, trace.SpanKindConsumer, attributes...)
	}
	links := make([]trace.Link, 0, min(len(senders), maxLinks))
	for _, sender := range senders[:cap(links)] {
		links = append(links, trace.Link{SpanContext: sender})
	}
	// With a parent, the span is sampled like the senders' spans.
	ctx = trace.ContextWithRemoteSpanContext(ctx, senders[0])
	return t.provider.Tracer(scope).Start(ctx, name, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithLinks(links...), trace.WithAttributes(attributes...))
}

// Kafka returns the attributes of a "send" or "process" operation on records, plus more, following
// https://opentelemetry.io/docs/specs/semconv/messaging/kafka/.
func Kafka(operation string, more ...attribute.KeyValue) []attribute.KeyValue {
	return append([]attribute.KeyValue{
		attribute.String("messaging.system", "kafka"),
		attribute.String("messaging.operation.type", operation),
		attribute.String("messaging.operation.name", operation),
	}, more...)
}

// Start starts a child of the span in ctx, if that records. Otherwise it returns ctx and a span that does not record.
func Start(ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, none
	}
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// none is a span that does not record.
var none = trace.SpanFromContext(context.Background())

// None returns a span that does not record.
func None() trace.Span { return none }

// ID returns the id of the trace of ctx if it is sampled, and otherwise "".
func ID(ctx context.Context) string {
	if sc := trace.SpanContextFromContext(ctx); sc.IsSampled() {
		return sc.TraceID().String()
	}
	return ""
}

// End ends a span with its error, if any. It records only the kind of the error, because error texts contain ids.
func End(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		Fail(span, kindOf(err))
	}
	span.End()
}

// Fail marks a span as failed. kind is from a fixed set of words or the name of a type.
func Fail(span trace.Span, kind string) {
	span.SetStatus(codes.Error, kind)
	span.SetAttributes(attribute.String("error.type", kind))
}

// kindOf returns the class of an error that callers distinguish, or the type of its cause.
func kindOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}
