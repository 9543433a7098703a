package topics

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/tracing"
)

// WithTrace returns the headers with a trace header for the span of ctx appended. If ctx has no span, it returns them
// unchanged.
func WithTrace(ctx context.Context, headers []kgo.RecordHeader) []kgo.RecordHeader {
	if value := tracing.Value(trace.SpanContextFromContext(ctx)); value != nil {
		headers = append(headers, kgo.RecordHeader{Key: tracing.Header, Value: value})
	}
	return headers
}

// traceOf returns the span context in the headers of a record.
func traceOf(r *kgo.Record) trace.SpanContext { return tracing.Parse(header(r, tracing.Header)) }

// maxTraced bounds the traced events of one publication. A request may contain ten thousand events, and several groups
// process each.
const maxTraced = 32

// startSend starts the span of a publication and adds the trace header to its records. Records after the first maxTraced get a
// trace that is not sampled.
func startSend(ctx context.Context, records []*kgo.Record) (context.Context, trace.Span) {
	parent := trace.SpanContextFromContext(ctx)
	if !parent.IsValid() {
		return ctx, tracing.None()
	}
	ctx, span := tracing.Start(ctx, "send", trace.SpanKindProducer,
		tracing.Kafka("send", attribute.Int("messaging.batch.message_count", len(records)))...)
	sampled, further := WithTrace(ctx, nil), []kgo.RecordHeader(nil)
	if len(records) > maxTraced {
		further = WithTrace(trace.ContextWithSpanContext(ctx, parent.WithTraceFlags(0)), nil)
	}
	for i, r := range records {
		if i < maxTraced {
			r.Headers = append(r.Headers, sampled...)
		} else {
			r.Headers = append(r.Headers, further...)
		}
	}
	return ctx, span
}

// startReceive starts the span for processing the records of one poll, if any of them is sampled.
func startReceive(ctx context.Context, cfg ConsumerConfig, records []*kgo.Record) (context.Context, trace.Span) {
	if cfg.Kafka.Tracer == nil {
		return ctx, tracing.None()
	}
	var senders []trace.SpanContext
	for _, r := range records {
		if sender := traceOf(r); sender.IsSampled() {
			senders = append(senders, sender)
		}
	}
	if len(senders) == 0 {
		return ctx, tracing.None()
	}
	attributes := tracing.Kafka("process",
		attribute.String("messaging.consumer.group.name", cfg.Group),
		attribute.Int("messaging.batch.message_count", len(records)))
	name := "process"
	if len(cfg.Topics) == 1 {
		name += " " + cfg.Topics[0]
		attributes = append(attributes, attribute.String("messaging.destination.name", cfg.Topics[0]))
	}
	return cfg.Kafka.Tracer.Batch(ctx, senders, name, attributes...)
}
