package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/tracing"
)

func TestParse_RejectsMalformedHeaders(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, test := range []struct {
		name, value string
		valid       bool
	}{
		{"valid", good, true},
		{"not sampled", strings.TrimSuffix(good, "1") + "0", true},
		{"with the flag of random ids", strings.TrimSuffix(good, "01") + "03", true},
		{"reserved flags", strings.TrimSuffix(good, "01") + "ff", false},
		{"later version with more fields", "cc" + good[2:] + "-more-fields", true},
		{"later version without a separator", "cc" + good[2:] + "more", false},
		{"this version with more fields", good + "-more", false},
		{"invalid version", "ff" + good[2:], false},
		{"upper case", strings.ToUpper(good), false},
		{"no trace", "00-" + strings.Repeat("0", 32) + good[35:], false},
		{"no span", good[:36] + strings.Repeat("0", 16) + "-01", false},
		{"other digits", strings.Replace(good, "4b", "4g", 1), false},
		{"other separators", strings.ReplaceAll(good, "-", "_"), false},
		{"short", good[:54], false},
		{"empty", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect.Equal(t, tracing.Parse([]byte(test.value)).IsValid(), test.valid, "valid")
		})
	}
}

func TestParse_ReadsValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cfg trace.SpanContextConfig
		copy(cfg.TraceID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "trace"))
		copy(cfg.SpanID[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "span"))
		if rapid.Bool().Draw(t, "sampled") {
			cfg.TraceFlags = trace.FlagsSampled
		}
		cfg.Remote = true
		want := trace.NewSpanContext(cfg)
		got := tracing.Parse(tracing.Value(want))
		if want.IsValid() && !got.Equal(want) || !want.IsValid() && got.IsValid() {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
	f.Fuzz(func(t *testing.T, value []byte) {
		if sc := tracing.Parse(value); sc.IsValid() && !tracing.Parse(tracing.Value(sc)).Equal(sc) {
			t.Errorf("%q: got %v, whose value does not parse to the same", value, sc)
		}
	})
}

// recorder returns a tracer that samples new traces with the given probability.
func recorder(chance float64) (*tracing.Tracer, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans), sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())))
	return tracing.New(provider, chance), spans
}

// sender returns a remote span, sampled or not.
func sender(n byte, recorded bool) trace.SpanContext {
	cfg := trace.SpanContextConfig{TraceID: trace.TraceID{n}, SpanID: trace.SpanID{n}, Remote: true}
	if recorded {
		cfg.TraceFlags = trace.FlagsSampled
	}
	return trace.NewSpanContext(cfg)
}

func TestDecide_FollowsSender(t *testing.T) {
	for _, test := range []struct {
		name   string
		chance float64
		parent trace.SpanContext
		want   bool
	}{
		{"sampled by the sender, probability 0", 0, sender(1, true), true},
		{"not sampled by the sender, probability 1", 1, sender(1, false), false},
		{"no sender, probability 1", 1, trace.SpanContext{}, true},
		{"no sender, probability 0", 0, trace.SpanContext{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			tracer, spans := recorder(test.chance)
			ctx, span := tracing.Unrecorded(t.Context(), test.parent), tracing.None()
			if tracer.Decide(test.parent) {
				ctx, span = tracer.Start(t.Context(), test.parent, "top", trace.SpanKindServer)
			}
			_, child := tracing.Start(ctx, "below", trace.SpanKindInternal)
			if recorded := trace.SpanFromContext(ctx).IsRecording(); recorded != test.want || (tracing.ID(ctx) != "") != test.want {
				t.Errorf("context: recorded %t, id %q; want %t", recorded, tracing.ID(ctx), test.want)
			}
			tracing.End(child, nil)
			tracing.End(span, nil)
			want := 0
			if test.want {
				want = 2
			}
			expect.Equal(t, len(spans.Ended()), want, "spans")
			if sc := trace.SpanContextFromContext(ctx); !sc.IsValid() || sc.IsSampled() != test.want {
				t.Errorf("got the propagated span context %v", sc)
			}
		})
	}
}

func TestTracer_NilStartsNoSpans(t *testing.T) {
	var off *tracing.Tracer
	ctx, span := off.Start(t.Context(), sender(1, true), "top", trace.SpanKindServer)
	expect.False(t, span.IsRecording() || trace.SpanContextFromContext(ctx).IsValid(), "a nil tracer started a span")
	if _, span := off.Batch(t.Context(), []trace.SpanContext{sender(1, true)}, "batch"); span.IsRecording() {
		t.Error("a nil tracer started a span of a batch")
	}
}

func TestBatch_LinksSenders(t *testing.T) {
	many := make([]trace.SpanContext, 100)
	for i := range many {
		many[i] = sender(byte(i+1), true)
	}
	for _, test := range []struct {
		name    string
		senders []trace.SpanContext
		links   int
	}{{"one sender", many[:1], 0}, {"three senders", many[:3], 3}, {"more than 64 senders", many, 64}} {
		t.Run(test.name, func(t *testing.T) {
			tracer, spans := recorder(0)
			_, span := tracer.Batch(t.Context(), test.senders, "process topic")
			tracing.End(span, nil)
			got := spans.Ended()
			if len(got) != 1 || len(got[0].Links()) != test.links {
				t.Fatalf("got %d spans, %v; want one with %d links", len(got), got, test.links)
			}
			expect.Equal(t, got[0].Parent().SpanID(), test.senders[0].SpanID(), "parent")
		})
	}
	tracer, spans := recorder(1)
	if _, span := tracer.Batch(t.Context(), nil, "process topic"); span.IsRecording() || len(spans.Started()) > 0 {
		t.Error("a batch without traced records has a span")
	}
}

type ownError struct{ text string }

func (e *ownError) Error() string { return e.text }

func TestEnd_RecordsOnlyKindOfError(t *testing.T) {
	tracer, spans := recorder(1)
	for _, err := range []error{
		nil, fmt.Errorf("request user:ada: %w", context.DeadlineExceeded), fmt.Errorf("user:ada: %w", &ownError{"user:ada"}), errors.New("user:ada"),
	} {
		_, span := tracer.Start(t.Context(), trace.SpanContext{}, "x", trace.SpanKindInternal)
		tracing.End(span, err)
	}
	want := []string{"", "timeout", "*tracing_test.ownError", "*errors.errorString"}
	for i, span := range spans.Ended() {
		if got := span.Status(); got.Description != want[i] || (got.Code == codes.Error) != (want[i] != "") {
			t.Errorf("span %d: got %v, want %q", i, got, want[i])
		}
		expect.Omits(t, fmt.Sprint(span.Attributes(), span.Events(), span.Status()), "ada", "span of an error")
	}
}

func TestStart_AllocatesNothingWithoutTracing(t *testing.T) {
	ctx := t.Context()
	var off *tracing.Tracer
	if got := testing.AllocsPerRun(100, func() {
		_, span := tracing.Start(ctx, "below", trace.SpanKindInternal)
		tracing.End(span, nil)
		_, span = off.Start(ctx, trace.SpanContext{}, "top", trace.SpanKindInternal)
		tracing.End(span, nil)
	}); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}
