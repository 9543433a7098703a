package hedged

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/tracing"
)

// spanContent is the content of a span: its name, and its attributes as name=value, sorted by name.
type spanContent struct {
	Name       string
	Attributes []string
}

func contentOf(span sdk.ReadOnlySpan) spanContent {
	t := spanContent{Name: span.Name()}
	for _, a := range span.Attributes() {
		t.Attributes = append(t.Attributes, string(a.Key)+"="+a.Value.Emit())
	}
	slices.Sort(t.Attributes)
	return t
}

// A call of either store is a span with the store's name. The parent span records whose answer was taken, and whether both
// stores were queried.
func TestRead_Traces(t *testing.T) {
	call := func(attributes ...string) spanContent { return spanContent{"feedstore page", attributes} }
	for _, c := range []struct {
		name string
		a, b *fake
		want []spanContent // sorted by attributes, the parent span last
	}{
		{"in time", newFake(5 * ms), newFake(5 * ms), []spanContent{
			call("smartfeed.store=primary"),
			{"request", []string{"smartfeed.store.hedged=false", "smartfeed.store.won=primary"}},
		}},
		{"the primary hangs", hung(), newFake(5 * ms), []spanContent{
			call("error.type=canceled", "smartfeed.store=primary"), call("smartfeed.store=standby"),
			{"request", []string{"smartfeed.store.hedged=true", "smartfeed.store.won=standby"}},
		}},
		{"the primary fails", down(), newFake(5 * ms), []spanContent{
			call("error.type=*errors.errorString", "smartfeed.store=primary"), call("smartfeed.store=standby"),
			{"request", []string{"smartfeed.store.hedged=true", "smartfeed.store.won=standby"}},
		}},
		{"the primary is late, and wins", newFake(62 * ms), newFake(50 * ms), []spanContent{
			call("error.type=canceled", "smartfeed.store=standby"), call("smartfeed.store=primary"),
			{"request", []string{"smartfeed.store.hedged=true", "smartfeed.store.won=primary"}},
		}},
		{"both fail", down(), down(), []spanContent{
			call("error.type=*errors.errorString", "smartfeed.store=primary"), call("error.type=*errors.errorString", "smartfeed.store=standby"),
			{"request", nil},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spans := tracetest.NewSpanRecorder()
				tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)), 1)
				s := newStore(t, cold(), c.a, c.b)
				ctx, span := tracer.Start(t.Context(), trace.SpanContext{}, "request", trace.SpanKindServer)
				_, _, _ = s.Page(ctx, "user:1", top, 10) // other tests check the answer
				s.Close()
				tracing.End(span, nil)
				var got []spanContent
				for _, ended := range spans.Ended() {
					if ended.Name() != "request" && ended.Parent().SpanID() != span.SpanContext().SpanID() {
						t.Errorf("%s is not below the request", ended.Name())
					}
					got = append(got, contentOf(ended))
				}
				slices.SortStableFunc(got, func(x, y spanContent) int {
					return cmp.Or(cmp.Compare(x.Name, y.Name), slices.Compare(x.Attributes, y.Attributes))
				})
				expect.NoDiff(t, got, c.want, "spans")
			})
		})
	}
}
