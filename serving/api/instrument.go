package api

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/metrics"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/peers"
)

// requestID is the header with the id of a request, in answers and in the log. A caller may send its own id of up to 64
// printable bytes.
const requestID = "X-Request-Id"

type measures struct {
	seconds *prometheus.HistogramVec
	omitted prometheus.Counter
}

func newMeasures(reg prometheus.Registerer) (*measures, error) {
	s := metrics.New(reg, "smartfeed_http_")
	m := &measures{
		seconds: s.SecondsBy("request_duration_seconds", "Time from the end of the request header to the end of the response, in seconds.",
			0.0005, 15, "route", "method", "code"), // 0.5 ms to 8 s
		omitted: s.Counter("audit_lines_omitted_total",
			"Audit lines of unauthenticated requests that were not logged, because there were more than 10 per second."),
	}
	return m, s.Err()
}

// identified adds the id of the request to every answer.
func (s *Server) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestID)
		if !printable(id) {
			id = rand.Text()
		}
		w.Header().Set(requestID, id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

func printable(id string) bool {
	for _, b := range []byte(id) {
		if b < '!' || b > '~' {
			return false
		}
	}
	return id != "" && len(id) <= 64
}

// instrument measures and logs a route's requests.
func (s *Server) instrument(route string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		answer := &answer{ResponseWriter: w, remote: r.RemoteAddr, status: http.StatusOK}
		defer func() { s.note(r, route, answer, time.Since(start)) }() // also for an aborted answer
		next.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), answerKey{}, answer)))
	})
}

func (s *Server) note(r *http.Request, route string, a *answer, took time.Duration) {
	s.metrics.seconds.WithLabelValues(route, method(r.Method), strconv.Itoa(a.status)).Observe(took.Seconds())
	if a.audited {
		s.audit(r, route, a)
	}
	s.log.LogAttrs(r.Context(), slog.LevelDebug, "request",
		slog.String("method", r.Method), slog.String("route", route), slog.String("path", r.URL.Path),
		slog.Int("code", a.status), slog.Int64("bytes", a.bytes), slog.Duration("took", took),
		slog.String("request", a.Header().Get(requestID)), traceAttr(a.trace))
}

// method limits the values of the label, because a caller can invent methods.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodPatch, http.MethodOptions:
		return m
	}
	return "other"
}

// answer records a request and the answer that was written. It is in the context of the request.
type answer struct {
	http.ResponseWriter
	remote string // address of the client
	begun  bool
	status int
	bytes  int64
	trace  string // the id of the recorded trace of the request, "": none

	caller  auth.Caller // zero: without authentication, or before it
	slot    *slot       // nil: before the request has one
	audited bool        // the request operates the product, and gets an audit line
	changed []slog.Attr // what the request changed, for the audit line
}

// answerKey is the context key of a request's *answer.
type answerKey struct{}

func answerOf(ctx context.Context) *answer {
	if a, ok := ctx.Value(answerKey{}).(*answer); ok {
		return a
	}
	return &answer{}
}

func (a *answer) WriteHeader(status int) {
	if !a.begun {
		a.begun, a.status = true, status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// Unwrap gives http.ResponseController access to the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// traced starts a trace for the requests of a call, or continues the caller's. It traces only calls of the kind request:
// streams, for example, have no end that a caller waits for.
func (s *Server) traced(r route, next http.Handler) http.Handler {
	if s.deps.Tracer == nil || r.kind != request {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		caller := callerTrace(req)
		if !s.deps.Tracer.Decide(caller) {
			next.ServeHTTP(w, req.WithContext(tracing.Unrecorded(req.Context(), caller)))
			return
		}
		s.record(w, req, caller, r.path, next)
	})
}

// tracePeer continues the trace of another process of the deployment, which is authenticated.
func (s *Server) tracePeer(w http.ResponseWriter, req *http.Request, next http.Handler) {
	caller := callerTrace(req)
	if s.deps.Tracer == nil || !caller.IsSampled() {
		next.ServeHTTP(w, req)
		return
	}
	s.record(w, req, caller, peers.Path+path.Base(req.URL.Path), next)
}

func callerTrace(req *http.Request) trace.SpanContext {
	return tracing.Parse([]byte(req.Header.Get(tracing.Header)))
}

// record handles a request in a span named after https://opentelemetry.io/docs/specs/semconv/http/http-spans/. It omits the
// path, which contains ids, and uses the route instead. Only a server error is an error of the span.
func (s *Server) record(w http.ResponseWriter, req *http.Request, caller trace.SpanContext, route string, next http.Handler) {
	verb := method(req.Method)
	ctx, span := s.deps.Tracer.Start(req.Context(), caller, verb+" "+route, trace.SpanKindServer,
		attribute.String("http.request.method", verb), attribute.String("http.route", route),
		attribute.String("url.scheme", s.Scheme()))
	defer span.End() // also for an aborted answer
	a := answerOf(ctx)
	a.trace = tracing.ID(ctx)
	next.ServeHTTP(w, req.WithContext(ctx))
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
