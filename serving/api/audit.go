package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/limit"
)

// operatorKey is where the context of a request that operates the product has an operator.
type operatorKey struct{}

// operating notes who asks for what operates the product: for the handler, and for the log, which has also who was refused.
func operating(c auth.Caller, w http.ResponseWriter, r *http.Request) *http.Request {
	o := operator{name: c.Subject, known: c.Subject != ""}
	if !o.known {
		address, _ := limit.AddressOf(r.RemoteAddr)
		o.name = "anonymous@" + address
	}
	if a, ok := w.(*answer); ok {
		a.operator = o.name
	}
	return r.WithContext(context.WithValue(r.Context(), operatorKey{}, o))
}

// audit logs a call that operates the product: at level info what is to change something, at debug what looks.
func (s *Server) audit(r *http.Request, route string, a *answer) {
	level := slog.LevelInfo
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		level = slog.LevelDebug
	}
	s.log.LogAttrs(r.Context(), level, "operated",
		slog.String("operator", a.operator), slog.String("method", r.Method), slog.String("route", route),
		slog.Int("code", a.status), slog.String("request", a.Header().Get(requestID)), traceAttr(a.trace))
}

// operator is who operates the product.
type operator struct {
	name  string
	known bool // by a token
}

// operatorOf returns who a change is attributed to: the subject of the token; where nobody is asked who they are, who they
// say they are, or where they are.
func operatorOf(ctx context.Context, said string) string {
	o, _ := ctx.Value(operatorKey{}).(operator)
	if !o.known && said != "" {
		return said
	}
	return o.name
}
