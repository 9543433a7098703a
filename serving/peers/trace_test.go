package peers

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tracing"
)

// A call to another process is a span with the name and the address of the call, and its context is propagated. No attribute
// contains the user.
func TestClient_TracesCalls(t *testing.T) {
	const name = "POST " + Path + string(callWaiting)
	for _, c := range []struct {
		test   string
		err    error // of the other process
		status string
		failed bool
	}{
		{"answered", nil, "200", false},
		{"failed", errors.New("broken"), "503", true},
	} {
		t.Run(c.test, func(t *testing.T) {
			var headers []string
			other := Handler(Local{Generator: &fakeGenerator{err: c.err}})
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				headers = append(headers, r.Header.Get(tracing.Header))
				other.ServeHTTP(w, r)
			}))
			defer s.Close()
			address := s.Listener.Addr().String()
			spans := tracetest.NewSpanRecorder()
			tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)), 1)
			ctx, above := tracer.Start(within(t, time.Minute), trace.SpanContext{}, "request", trace.SpanKindServer)
			must.Equal(t, expect.ErrorOf(client(t, &directory{owner: address}).Waiting(ctx, user)) != nil, c.failed, "failed")
			tracing.End(above, nil)

			ended := spans.Ended()
			must.Equal(t, len(ended), 2, "spans: the call's and the request's")
			call := ended[0]
			if call.Name() != name || call.SpanKind() != trace.SpanKindClient || call.Parent().SpanID() != above.SpanContext().SpanID() {
				t.Errorf("got span %q of kind %v below %v, want %q of a client, below the request", call.Name(), call.SpanKind(), call.Parent().SpanID(), name)
			}
			got := map[string]string{}
			for _, a := range call.Attributes() {
				got[string(a.Key)] = a.Value.Emit()
			}
			want := map[string]string{
				"http.request.method": "POST", "url.template": Path + string(callWaiting), "network.peer.address": address, "http.response.status_code": c.status,
			}
			if kind, has := got["error.type"]; has != c.failed || (kind == "") == c.failed {
				t.Errorf("error.type: got %q", kind)
			}
			delete(got, "error.type") // the name of a Go type
			expect.NoDiff(t, got, want, "attributes")
			expect.Equal(t, call.Status().Code == codes.Error, c.failed, "the span has an error, %v", call.Status())
			received := string(tracing.Value(call.SpanContext()))
			expect.NoDiff(t, headers, []string{received}, "headers")
		})
	}
}
