// Package tracing makes spans of what goes through the product, after OpenTelemetry: of a request, of what a group does with
// a record, of calls to what answers need.
//
// Whether something is traced is decided once, where it begins: by the caller or producer who says so in traceparent
// (https://www.w3.org/TR/trace-context/), else by chance. The decision travels with requests between processes and with
// records, so that a trace is whole or absent. Below the beginning nobody needs a Tracer: Start makes a child of the span in
// the context and costs a look into the context when there is none.
//
// Names and attributes are those of the semantic conventions for HTTP and for messaging
// (https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/): a record that is worked off by itself is a
// child of what sent it; a batch is linked to the senders of its records, because it has more than one. No attribute holds
// an id of a person or of a thing, a key, a path or the text of an error.
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

// Header is the name of the header that tells what a record or request belongs to, in HTTP and in Kafka.
const Header = "traceparent"

// scope names this program as the maker of its spans.
const scope = "github.com/smartfeed/smartfeed"

// Tracer begins traces. A nil one begins none.
type Tracer struct {
	provider trace.TracerProvider
	share    float64
}

// New returns a tracer whose spans go where the provider has them go, which must record what has no parent. The share of
// what begins here that is traced is 0 to 1.
func New(provider trace.TracerProvider, share float64) *Tracer { return &Tracer{provider, share} }

// Decide says whether to trace what a sender asks for: as the sender says, or, if there is none, by chance. It is cheap, so
// that what is not traced is.
func (t *Tracer) Decide(sender trace.SpanContext) bool {
	switch {
	case t == nil:
		return false
	case sender.IsValid():
		return sender.IsSampled()
	}
	return rand.Float64() < t.share
}

// Unrecorded returns ctx as that of something that is not traced, so that others whom it reaches do not decide anew.
func Unrecorded(ctx context.Context, sender trace.SpanContext) context.Context {
	if !sender.IsValid() {
		var cfg trace.SpanContextConfig
		binary.NativeEndian.PutUint64(cfg.TraceID[:], rand.Uint64()|1) // never all zero, which is none
		binary.NativeEndian.PutUint64(cfg.SpanID[:], rand.Uint64()|1)
		sender = trace.NewSpanContext(cfg)
	}
	return trace.ContextWithRemoteSpanContext(ctx, sender)
}

// Start begins a span of a kind below parent, without a valid one a trace, for which Decide has decided. A nil tracer
// returns ctx and a span that is none.
func (t *Tracer) Start(ctx context.Context, parent trace.SpanContext, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	if t == nil {
		return ctx, none
	}
	ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	return t.provider.Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// maxLinks bounds the links of a batch.
const maxLinks = 64

// Batch begins the span of what works off several records at once, given those of their senders that are recorded; of none
// it is none. It is below the first and, if there are more, linked to each of the first 64.
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
	// It is recorded because they are, whatever chance would say of it by itself: hence a parent.
	ctx = trace.ContextWithRemoteSpanContext(ctx, senders[0])
	return t.provider.Tracer(scope).Start(ctx, name, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithLinks(links...), trace.WithAttributes(attributes...))
}

// Kafka returns the attributes of sending or working off records, "send" or "process", and more of them, by
// https://opentelemetry.io/docs/specs/semconv/messaging/kafka/.
func Kafka(operation string, more ...attribute.KeyValue) []attribute.KeyValue {
	return append([]attribute.KeyValue{
		attribute.String("messaging.system", "kafka"),
		attribute.String("messaging.operation.type", operation),
		attribute.String("messaging.operation.name", operation),
	}, more...)
}

// Start begins a span below the one in ctx, if that is recorded; otherwise it returns ctx and a span that is none.
func Start(ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, none
	}
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// none is a span that records nothing.
var none = trace.SpanFromContext(context.Background())

// None returns a span that records nothing.
func None() trace.Span { return none }

// Recorded says whether what is done with ctx is part of a trace that is recorded.
func Recorded(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// ID returns the id of the recorded trace that ctx belongs to, "" of none.
func ID(ctx context.Context) string {
	if sc := trace.SpanContextFromContext(ctx); sc.IsSampled() {
		return sc.TraceID().String()
	}
	return ""
}

// End ends a span with what came of it. The error is told by its kind alone: texts hold ids.
func End(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		Fail(span, kindOf(err))
	}
	span.End()
}

// Fail marks a span as failed, with a word of a fixed set or the name of a type.
func Fail(span trace.Span, kind string) {
	span.SetStatus(codes.Error, kind)
	span.SetAttributes(attribute.String("error.type", kind))
}

// kindOf names an error by what a caller could do about it, else by the type of its cause.
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
