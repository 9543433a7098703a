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

// operator is the caller of a request that changes data or operates the product. A handler adds what it changed.
type operator struct {
	name    string // subject of the token; anonymous@address without one
	caller  auth.Caller
	changed []slog.Attr
}

// operatorKey is the context key of a request's *operator.
type operatorKey struct{}

// attributed adds the operator to a request's context. Requests that operate the product get an audit line, including
// rejected ones. Of events, only deletes get one, see auditDeletes.
func attributed(c auth.Caller, a access, w http.ResponseWriter, r *http.Request) *http.Request {
	o := &operator{name: c.Subject, caller: c}
	if o.name == "" {
		address, _ := limit.AddressOf(r.RemoteAddr)
		o.name = "anonymous@" + address
	}
	if answer, ok := w.(*answer); ok && a.scope == auth.Operate {
		answer.operator = o
	}
	return r.WithContext(context.WithValue(r.Context(), operatorKey{}, o))
}

// operatorOf returns the operator of a request, with an empty name if there is none.
func operatorOf(ctx context.Context) *operator {
	if o, ok := ctx.Value(operatorKey{}).(*operator); ok {
		return o
	}
	return &operator{}
}

// or returns the name to which a change is attributed: the subject of the token, or without authentication the given name,
// if any.
func (o *operator) or(said string) string {
	if o.caller.Subject == "" && said != "" {
		return said
	}
	return o.name
}

// change adds what a request changed to its audit line.
func (o *operator) change(attrs ...slog.Attr) { o.changed = append(o.changed, attrs...) }

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
		slog.String("operator", a.operator.name), slog.String("method", r.Method), slog.String("route", route),
		slog.Int("code", a.status), slog.String("request", a.Header().Get(requestID)), traceAttr(a.trace),
	}
	if s.deps.Auth != nil && a.operator.caller.Subject == "" {
		if !s.auditLines.AllowN(s.deps.Now(), 1) {
			s.omitted.Add(1)
			s.metrics.omitted.Inc()
			return
		}
		attrs = append(attrs, slog.Int64("omitted", s.omitted.Swap(0)))
	}
	s.log.LogAttrs(r.Context(), level, "operated", append(attrs, a.operator.changed...)...)
}

// auditDeletes logs each accepted delete, because a delete cannot be undone.
func (s *Server) auditDeletes(ctx context.Context, request string, lines []schemas.Line) {
	for _, l := range lines {
		if object, event, ok := l.Deletes(); ok {
			s.log.LogAttrs(ctx, slog.LevelInfo, "delete accepted", slog.String("operator", operatorOf(ctx).name),
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
	caller := operatorOf(ctx).caller
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
	p := problem(http.StatusForbidden, "%s; nothing was published", strings.Join(refused, "; "))
	p.challenge = `Bearer error="insufficient_scope", scope="` + scope + `"`
	return p
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
