package rows

import (
	"errors"
	"testing"
	"time"

	"github.com/lovoo/goka"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/topics"
)

// headed is a record with headers.
type headed struct {
	fakeRecord
	headers goka.Headers
}

func (r headed) Headers() goka.Headers { return r.headers }

// spansOf returns a tracer that samples with a probability, and the spans that it created.
func spansOf(probability float64) (*tracing.Tracer, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans), sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())))
	return tracing.New(provider, probability), spans
}

// sentBy returns the span context of a sender.
func sentBy(recorded bool) trace.SpanContext {
	cfg := trace.SpanContextConfig{TraceID: trace.TraceID{7}, SpanID: trace.SpanID{8}, Remote: true}
	if recorded {
		cfg.TraceFlags = trace.FlagsSampled
	}
	return trace.NewSpanContext(cfg)
}

// echo returns a group whose callback emits one record.
func echo() Group {
	return Group{Name: "g", Outputs: []string{"out"}, Inputs: []Input{{topic: "in", handle: func(tx *Tx, value []byte) error {
		if string(value) == "broken" {
			return errors.New("dependency is unavailable")
		}
		tx.Emit("out", tx.Key(), value)
		return nil
	}}}}
}

func TestTrace_FollowsTheSender(t *testing.T) {
	t.Parallel()
	header := func(recorded bool) []byte { return tracing.Value(sentBy(recorded)) }
	for _, test := range []struct {
		name        string
		probability float64
		headers     goka.Headers
		spans       int
		root        bool
	}{
		{"recorded by its sender", 0, goka.Headers{tracing.Header: header(true)}, 1, false},
		{"not recorded by its sender", 1, goka.Headers{tracing.Header: header(false)}, 0, false},
		{"derived from an untraced record", 1, goka.Headers{topics.OriginHeader: topics.OriginValue(5)}, 0, false},
		{"derived, recorded", 0, goka.Headers{topics.OriginHeader: topics.OriginValue(5), tracing.Header: header(true)}, 1, false},
		{"external, sampled", 1, nil, 1, true},
		{"external, not sampled", 0, nil, 0, false},
		{"external, with an invalid header", 1, goka.Headers{tracing.Header: []byte("00-xx")}, 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPartition(t, echo())
			var spans *tracetest.SpanRecorder
			p.run.r.env.Kafka.Tracer, spans = spansOf(test.probability)
			key := ownersOfPartition0(1)[0]
			p.handle(headed{fakeRecord{topic: "in", key: key, offset: 4, at: time.UnixMilli(5)}, test.headers}, 0, []byte("x"))
			b := p.state.pending
			if len(spans.Started()) != test.spans || len(spans.Ended()) != 0 {
				t.Fatalf("%d spans started, %d ended before the commit; want %d and none", len(spans.Started()), len(spans.Ended()), test.spans)
			}
			records := new(transactionRecords).fill(b, p.run.r.topo, p.id)
			told := headerOf(records[len(records)-1], tracing.Header)
			b.traces.end("")
			ended := spans.Ended()
			must.Equal(t, len(ended), test.spans, "ended spans")
			if test.spans == 0 {
				expect.True(t, told == nil, "the emitted record has the header %s", told)
				return
			}
			if got := tracing.Parse(told); got.SpanID() != ended[0].SpanContext().SpanID() || !got.IsSampled() {
				t.Errorf("the emitted record has the span %v, want %v", got, ended[0].SpanContext())
			}
			expect.Equal(t, !ended[0].Parent().IsValid(), test.root, "span is a root")
		})
	}
}

func headerOf(r kgo.Record, key string) []byte {
	for _, h := range r.Headers {
		if h.Key == key {
			return h.Value
		}
	}
	return nil
}

// A span always ends: with the error of its record, or with that of a commit that did not happen.
func TestTrace_EndsWithoutACommit(t *testing.T) {
	t.Parallel()
	p := newPartition(t, echo())
	var spans *tracetest.SpanRecorder
	p.run.r.env.Kafka.Tracer, spans = spansOf(0)
	headers := goka.Headers{tracing.Header: tracing.Value(sentBy(true))}
	key := ownersOfPartition0(1)[0]
	for i, value := range []string{"valid", "broken", "after the error"} {
		p.handle(headed{fakeRecord{topic: "in", key: key, offset: int64(i), at: time.UnixMilli(5)}, headers}, 0, []byte(value))
	}
	expect.NoDiff(t, describe(spans.Ended()), []string{"*errors.errorString"}, "spans ended when the callback failed")
	p.failTraces()
	expect.NoDiff(t, describe(spans.Ended()), []string{"*errors.errorString", notCommitted}, "spans ended at the end")
	expect.Equal(t, len(spans.Started()), 2, "spans started: the third record was not processed")
}

// describe returns the status descriptions of spans.
func describe(spans []sdk.ReadOnlySpan) (wrong []string) {
	for _, s := range spans {
		wrong = append(wrong, s.Status().Description)
	}
	return wrong
}
