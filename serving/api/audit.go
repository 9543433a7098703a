package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/limit"
)

// operator returns the name of the caller of a request that changes data or operates the product: the subject of the token, or
// anonymous@address without one.
func (a *answer) operator() string {
	if a.caller.Subject != "" {
		return a.caller.Subject
	}
	address, _ := limit.AddressOf(a.remote)
	return "anonymous@" + address
}

// operatorOr returns the name to which a change is attributed: the subject of the token, or without authentication the given
// name, if any.
func (a *answer) operatorOr(said string) string {
	if a.caller.Subject == "" && said != "" {
		return said
	}
	return a.operator()
}

// change adds what a request changed to its audit line.
func (a *answer) change(attrs ...slog.Attr) { a.changed = append(a.changed, attrs...) }

// linesPerSecond is the maximum rate of audit lines for requests without a valid token.
const linesPerSecond = 10

// audit logs a call that operates the product: changes at level info, reads at debug. The number of calls without a valid
// token is unlimited, so only some of them are logged.
func (s *Server) audit(r *http.Request, route string, a *answer) {
	level := slog.LevelInfo
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{
		slog.String("operator", a.operator()), slog.String("method", r.Method), slog.String("route", route),
		slog.Int("code", a.status), slog.String("request", a.Header().Get(requestID)), traceAttr(a.trace),
	}
	if s.deps.Auth != nil && a.caller.Subject == "" {
		if !s.auditLines.AllowN(s.deps.Now(), 1) {
			s.omitted.Add(1)
			s.metrics.omitted.Inc()
			return
		}
		attrs = append(attrs, slog.Int64("omitted", s.omitted.Swap(0)))
	}
	s.log.LogAttrs(r.Context(), level, "operated", append(attrs, a.changed...)...)
}

// auditDeletes logs each accepted delete, because a delete cannot be undone.
func (s *Server) auditDeletes(ctx context.Context, request string, lines []schemas.Line) {
	for _, l := range lines {
		if object, event, ok := l.Deletes(); ok {
			s.log.LogAttrs(ctx, slog.LevelInfo, "delete accepted", slog.String("operator", answerOf(ctx).operator()),
				slog.String("object", object), slog.String("event", event), slog.String("request", request))
		}
	}
}

// checkEvents rejects a request with events that the caller's scopes do not permit. Nothing of the request is published
// then.
func (s *Server) checkEvents(ctx context.Context, lines []schemas.Line) error {
	if s.deps.Auth == nil {
		return nil
	}
	caller := answerOf(ctx).caller
	var refused []string
	var scope string
	for _, l := range lines {
		if needs := scopeOf(l); !caller.HasScope(needs) && !(needs != auth.DeleteUsers && caller.HasScope(auth.Events)) {
			scope = needs
			if refused = append(refused, quote(l.Key)+" of stream "+l.Stream+" needs the scope "+needs); len(refused) == maxRefused {
				break
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return needsScope(scope, "%s; nothing was published", strings.Join(refused, "; "))
}

// maxRefused is the maximum number of events that a rejection lists.
const maxRefused = 3

// scopeOf returns the narrowest scope that permits an event.
func scopeOf(l schemas.Line) string {
	if deletesUser(l) {
		return auth.DeleteUsers
	}
	return auth.EventsOf(l.Stream)
}
