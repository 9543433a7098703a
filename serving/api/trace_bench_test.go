package api

import (
	"net/http"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/smartfeed/smartfeed/internal/tracing"
)

// BenchmarkPageTraced measures the server's cost of a page from a feed that answers at once: without a tracer, with one
// that samples no request, and with one that samples all.
func BenchmarkPageTraced(b *testing.B) {
	for _, c := range []struct {
		name   string
		tracer *tracing.Tracer
	}{
		{"off", nil}, {"none", tracing.New(sdk.NewTracerProvider(), 0)}, {"all", tracing.New(sdk.NewTracerProvider(), 1)},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := listen(b, &fakes{}, func(cfg *Config, d *Deps) { d.Tracer, cfg.Limits.UserRate, cfg.Limits.UserBurst = c.tracer, 1e6, 1e6 }).handler()
			b.ReportAllocs()
			for b.Loop() {
				if res := roundTripTo(h, "GET", "/v1/users/user:a/feed?cursor=good", nil); res.StatusCode != http.StatusOK {
					b.Fatalf("got %d", res.StatusCode)
				}
			}
		})
	}
}
