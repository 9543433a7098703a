package api

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/serving/peers"
)

// traced starts a trace for the requests of a call, or continues the caller's. It traces only calls of the kind request:
// streams, for example, have no end that a caller waits for.
func (s *Server) traced(r route, next http.Handler) http.Handler {
	if s.deps.Tracer == nil || r.kind != request {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var caller trace.SpanContext
		if s.deps.FromCallers {
			caller = callerTrace(req)
		}
		if !s.deps.Tracer.Decide(caller) {
			next.ServeHTTP(w, req.WithContext(tracing.Unrecorded(req.Context(), caller)))
			return
		}
		ctx, span := s.begin(w, req, caller, r.path)
		defer span.End() // also for an aborted answer
		next.ServeHTTP(w, req.WithContext(ctx))
		outcome(span, w)
	})
}

// tracePeer continues the trace of another process of the deployment, which is authenticated.
func (s *Server) tracePeer(w http.ResponseWriter, req *http.Request, next http.Handler) {
	caller := callerTrace(req)
	if s.deps.Tracer == nil || !caller.IsSampled() {
		next.ServeHTTP(w, req)
		return
	}
	ctx, span := s.begin(w, req, caller, peers.Path+path.Base(req.URL.Path))
	defer span.End()
	next.ServeHTTP(w, req.WithContext(ctx))
	outcome(span, w)
}

func callerTrace(req *http.Request) trace.SpanContext {
	return tracing.Parse([]byte(req.Header.Get(tracing.Header)))
}

// begin starts a span named after https://opentelemetry.io/docs/specs/semconv/http/http-spans/. It omits the path, which
// contains ids, and uses the route instead.
func (s *Server) begin(w http.ResponseWriter, req *http.Request, caller trace.SpanContext, route string) (context.Context, trace.Span) {
	verb := method(req.Method)
	ctx, span := s.deps.Tracer.Start(req.Context(), caller, verb+" "+route, trace.SpanKindServer,
		attribute.String("http.request.method", verb), attribute.String("http.route", route),
		attribute.String("url.scheme", s.Scheme()))
	if a, ok := w.(*answer); ok {
		a.trace = tracing.ID(ctx)
	}
	return ctx, span
}

// outcome records in the span how a request was answered. Only a server error is an error of the span.
func outcome(span trace.Span, w http.ResponseWriter) {
	a, ok := w.(*answer)
	if !ok || !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.Int("http.response.status_code", a.status), attribute.String("smartfeed.request", a.Header().Get(requestID)))
	if a.status >= http.StatusInternalServerError {
		tracing.Fail(span, strconv.Itoa(a.status))
	}
}

// traceAttr returns the log attribute with the id of a trace. It is empty if the trace is not recorded.
func traceAttr(id string) slog.Attr {
	if id != "" {
		return slog.String("trace", id)
	}
	return slog.Attr{}
}
