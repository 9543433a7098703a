package rows

import (
	"context"
	"math"
	"strconv"

	"github.com/lovoo/goka"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/topics"
)

// traces holds the spans of a batch, one per traced record. A span starts when the record is processed and ends when its
// effect is durable. If a batch is not committed, its spans end with an error. The records are then processed again and get
// new spans.
type traces struct {
	spans []trace.Span
	now   uint16 // span of the record being processed: its index + 1; 0: not traced
}

// maxTraced limits the spans of a batch. Further records are not traced.
const maxTraced = math.MaxUint16

// reset removes the spans, which must have ended.
func (t *traces) reset() {
	clear(t.spans)
	t.spans, t.now = t.spans[:0], 0
}

// end ends all spans. how describes the failure; "" means that the records are durable.
func (t *traces) end(how string) {
	for _, span := range t.spans {
		if how != "" {
			tracing.Fail(span, how)
		}
		span.End()
	}
}

// header returns the trace header of records that a traced record emits.
func (t *traces) header(traced uint16) []byte {
	return tracing.Value(t.spans[traced-1].SpanContext())
}

// Descriptions of spans whose record has no effect, or went to the dead-letter topic.
const (
	notCommitted = "not committed"
	deadLettered = "dead letter"
)

// startTrace starts the span of a record, if the record is traced. A record with a trace header follows its sender's decision. A
// record that is not derived from another one, and has no such header, is sampled at random.
func (p *partition) startTrace(record goka.Context) {
	tracer, t := p.run.r.env.Kafka.Tracer, &p.state.pending.traces
	if tracer == nil || len(t.spans) == maxTraced {
		return
	}
	headers := record.Headers()
	sender := tracing.Parse(headers[tracing.Header])
	if _, derived := headers[topics.OriginHeader]; derived && !sender.IsValid() || !tracer.Decide(sender) {
		return
	}
	topic := string(record.Topic())
	_, span := tracer.Start(context.Background(), sender, "process "+topic, trace.SpanKindConsumer, tracing.Kafka("process",
		attribute.String("messaging.destination.name", topic),
		attribute.String("messaging.destination.partition.id", strconv.Itoa(int(p.id))),
		attribute.String("messaging.consumer.group.name", p.run.r.topo.name),
		attribute.Int64("messaging.kafka.offset", record.Offset()))...)
	t.spans = append(t.spans, span)
	t.now = uint16(len(t.spans))
}

// endTrace is called when a record was processed or has failed. The span of a processed record ends with the commit.
func (p *partition) endTrace(err error, deadLetters int) {
	b := p.state.pending
	if b.traces.now == 0 {
		return
	}
	last := len(b.traces.spans) - 1
	span := b.traces.spans[last]
	b.traces.now = 0
	switch {
	case err != nil:
		tracing.End(span, err)
		b.traces.spans = b.traces.spans[:last]
	case len(b.deadLetters) > deadLetters:
		tracing.Fail(span, deadLettered)
	default:
		span.AddEvent("processed")
	}
}

// failTraces ends the spans of uncommitted batches when no more commits follow.
func (p *partition) failTraces() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range []*batch{p.state.committing, p.state.pending} {
		if b != nil {
			b.traces.end(notCommitted)
			b.traces.reset()
		}
	}
}
