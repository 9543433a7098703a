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

// traces are the spans of a batch: one for each of its records that is traced. A span begins when the record is worked off
// and ends when its effect is durable, so it is as long as the hop. A record that was not committed after all is worked off
// again and has another span then; that of the first time says so.
type traces struct {
	spans []trace.Span
	now   uint16 // of the record being worked off: its index + 1, 0: it is not traced
}

// maxTraced bounds the spans of a batch; records beyond are not traced.
const maxTraced = math.MaxUint16

// reset forgets the spans, which must have ended.
func (t *traces) reset() {
	clear(t.spans)
	t.spans, t.now = t.spans[:0], 0
}

// end ends all spans; how says what went wrong, "" that their records are durable.
func (t *traces) end(how string) {
	for _, span := range t.spans {
		if how != "" {
			tracing.Fail(span, how)
		}
		span.End()
	}
}

// header returns the header of the records that a traced record emits.
func (t *traces) header(traced uint16) []byte {
	return tracing.Value(t.spans[traced-1].SpanContext())
}

// Spans end so when their record has no effect, or another than was meant.
const (
	notCommitted = "not committed"
	buried       = "dead letter"
)

// trace begins the span of a record, if it is traced: as its sender says, or, of one that begins something itself and says
// nothing, by chance.
func (p *part) trace(record goka.Context) {
	tracer, t := p.w.r.env.Kafka.Tracer, &p.state.pending.traces
	if tracer == nil || len(t.spans) == maxTraced {
		return
	}
	headers := record.Headers()
	sender := tracing.Parse(headers[tracing.Header])
	if _, derived := headers[topics.SinceHeader]; derived && !sender.IsValid() || !tracer.Decide(sender) {
		return
	}
	topic := string(record.Topic())
	_, span := tracer.Start(context.Background(), sender, "process "+topic, trace.SpanKindConsumer, tracing.Kafka("process",
		attribute.String("messaging.destination.name", topic),
		attribute.String("messaging.destination.partition.id", strconv.Itoa(int(p.id))),
		attribute.String("messaging.consumer.group.name", p.w.r.topo.name),
		attribute.Int64("messaging.kafka.offset", record.Offset()))...)
	t.spans = append(t.spans, span)
	t.now = uint16(len(t.spans))
}

// traced is called when the record has been worked off, or has failed. Its span goes on until the commit.
func (p *part) traced(err error, letters int) {
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
	case len(b.letters) > letters:
		tracing.Fail(span, buried)
	default:
		span.AddEvent("worked off")
	}
}

// giveUpTraces ends the spans of what was not committed, when nothing will be any more.
func (p *part) giveUpTraces() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range []*batch{p.state.flying, p.state.pending} {
		if b != nil {
			b.traces.end(notCommitted)
			b.traces.reset()
		}
	}
}
