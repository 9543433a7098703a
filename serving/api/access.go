package api

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/foreign"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
)

// Verifier verifies tokens, as auth.Verifier does.
type Verifier interface {
	// Verify returns an *auth.TokenError if the token is rejected, an *auth.IdentityError if it identifies neither a user
	// nor a service or both, and auth.ErrNoKeys if tokens cannot be checked.
	Verify(ctx context.Context, token string) (auth.Caller, error)
}

// ScrapeCheck returns an error unless a token is the static one of the metrics, as auth.ScrapeToken.Check does.
type ScrapeCheck func(token string) error

// PeerCheck returns an error unless a request is from another process of the deployment, as auth.Peers.Check does.
type PeerCheck func(r *http.Request) error

// access states which callers may make a call. The zero access permits every caller, without a token.
type access struct {
	scope  string     // required in a service's token, for the data of all users; "": no token is required
	users  userAccess // what a user's token permits without the scope
	parts  bool       // narrower scopes, such as events:pins, also admit a caller; the handler checks what they permit
	scrape bool       // the static token of the metrics also permits the call
	view   bool       // the call changes nothing, except a visit with GET, so the scope view also permits it
}

// userAccess is the data that a user's own token permits to read.
type userAccess int

const (
	noData  userAccess = iota
	ownData            // the data of the user in the path
	allData            // the data of all users, because it is published
)

// class returns the class of the call for the limits of requests in flight.
func (a access) class() string { return cmp.Or(a.scope, "open") }

// check returns nil if the caller may make the call. Scopes are only for services: an issuer may put them into every user's
// token, so a scope in a user's token permits no access to other users' data.
func (a access) check(c auth.Caller, r *http.Request) error {
	switch {
	case a.scope == "", c.User == "" && a.permits(c), c.User != "" && a.users == allData:
		return nil
	case a.users == ownData && c.User != "" && r.PathValue("user") == string(c.User):
		return nil
	}
	return needsScope(a.scope, "%s", a.needs())
}

// needsScope returns a 403 that names the scope that a token lacks.
func needsScope(scope, format string, args ...any) *Problem {
	return problem(http.StatusForbidden, format, args...).with("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
}

func (a access) permits(c auth.Caller) bool {
	below := func(scope string) bool { return strings.HasPrefix(scope, a.scope+":") }
	return c.HasScope(a.scope) || a.view && c.HasScope(auth.View) || a.parts && slices.ContainsFunc(c.Scopes, below)
}

func (a access) needs() string {
	scope := a.scope
	if a.view {
		scope += " or " + auth.View
	}
	switch a.users {
	case ownData:
		return "requires the token of the user, or a service's with the scope " + scope
	case allData:
		return "requires a user's token, or a service's with the scope " + scope
	}
	return "requires a service's token with the scope " + scope
}

// onlyViews reports whether a caller is a service that the scope view admits, without the scope of the call.
func onlyViews(ctx context.Context, scope string) bool {
	c := answerOf(ctx).caller
	return c.User == "" && c.HasScope(auth.View) && !c.HasScope(scope)
}

// caller is the answer of GET /v1/caller.
type caller struct {
	Authentication bool           `json:"authentication"` // false: every caller may make every call
	Subject        string         `json:"subject,omitempty"`
	User           schemas.UserID `json:"user,omitempty"`
	Scopes         []string       `json:"scopes"`
}

// caller answers with the caller that the token identifies.
func (s *Server) caller(p *parameters) computation {
	c := answerOf(p.r.Context()).caller
	return func(context.Context) (any, error) {
		answer := caller{Authentication: s.deps.Auth != nil, Subject: c.Subject, User: c.User, Scopes: []string{}}
		if c.User == "" { // scopes in a user's token have no effect
			answer.Scopes = append(answer.Scopes, c.Scopes...)
		}
		return answer, nil
	}
}

// admit returns an error unless the caller may make the call and is within its rate. It returns the caller if authentication
// is enabled and the request has a valid token.
func (s *Server) admit(a access, r *http.Request) (auth.Caller, error) {
	if s.deps.Auth == nil { // all addresses are then local ones, or those of a proxy for all callers
		return auth.Caller{}, nil
	}
	token, given := auth.Bearer(r)
	if !given {
		if err := tooMany(s.callers.Address(r.RemoteAddr)); err != nil || a.scope == "" {
			return auth.Caller{}, err
		}
		return auth.Caller{}, problem(http.StatusUnauthorized, "%s", a.needs()).with("WWW-Authenticate", "Bearer")
	}
	if a.scrape && s.isScraper(token) {
		return auth.Caller{Subject: scraper}, tooMany(s.callers.Service(scraper))
	}
	c, err := s.deps.Auth.Verify(r.Context(), token)
	if err != nil {
		if within := tooMany(s.callers.Address(r.RemoteAddr)); within != nil || a.scope == "" { // an open call also works with an invalid token
			return auth.Caller{}, within
		}
		return auth.Caller{}, unverified(err)
	}
	take := s.callers.Service
	if c.User != "" {
		take = s.callers.User
	}
	if err := tooMany(take(c.Subject)); err != nil {
		return auth.Caller{}, err
	}
	return c, a.check(c, r)
}

// scraper is the subject of callers with the static token of the metrics.
const scraper = "metrics.token_file"

// isScraper reports whether a token is the static one of the metrics.
func (s *Server) isScraper(token string) bool {
	if s.deps.Scrape == nil {
		return false
	}
	err := s.deps.Scrape(token)
	if _, refused := errors.AsType[*auth.TokenError](err); err != nil && !refused {
		s.log.Warn("cannot check the token of a scrape", "error", err)
	}
	return err == nil
}

// unverified returns the answer to a token that was rejected.
func unverified(err error) error {
	var refused *auth.TokenError
	var neither *auth.IdentityError
	switch {
	case errors.As(err, &neither):
		return problem(http.StatusForbidden, "%v", neither).with("WWW-Authenticate", `Bearer error="insufficient_scope"`)
	case errors.As(err, &refused):
		return problem(http.StatusUnauthorized, "%v", refused).with("WWW-Authenticate", `Bearer error="invalid_token"`)
	case errors.Is(err, auth.ErrNoKeys):
		return unavailable("%v", auth.ErrNoKeys)
	}
	return err
}

// tooMany returns a 429 unless ok is set.
func tooMany(again time.Duration, ok bool) error {
	if ok {
		return nil
	}
	return problem(http.StatusTooManyRequests, "the caller is above its request rate; retry in %s", again.Round(time.Millisecond)).
		retryIn(max(1, int(math.Ceil(again.Seconds()))))
}

// crossSite returns the answer to a request of another site's page that would change something.
func crossSite() *Problem {
	return problem(http.StatusForbidden, "cross-site requests are not allowed")
}

// checkHost rejects requests by an unknown host name if authentication is disabled. Any site can make one of its names
// resolve to this machine. A browser then treats the server as a part of that site, and the site's pages could read every
// answer. The server's own names are Config.AllowedHosts.
func (s *Server) checkHost(r *http.Request) error {
	if s.deps.Auth != nil || !foreign.Name(r.Host, s.cfg.AllowedHosts...) {
		return nil
	}
	return problem(http.StatusForbidden, "host name %s is not allowed while authentication is disabled, because any site can make its own "+
		"name resolve to this machine; use 127.0.0.1 or localhost, add the name to api.allowed_hosts, or set auth.jwks or auth.secret_file", quote(r.Host))
}
