package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Value returns the header of a span, or nil if the span context is invalid.
func Value(of trace.SpanContext) []byte {
	if !of.IsValid() {
		return nil
	}
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), of), headers)
	return []byte(headers[Header])
}

// Parse reads a header. It returns an invalid span context if the header is missing or malformed.
func Parse(value []byte) trace.SpanContext {
	if len(value) == 0 {
		return trace.SpanContext{}
	}
	headers := propagation.MapCarrier{Header: string(value)}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), headers))
}
