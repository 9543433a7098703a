package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/serving/auth"
)

// Verifier says whose a token is; auth.Verifier does.
type Verifier interface {
	// Verify fails with an *auth.TokenError if the token is not taken, with an *auth.IdentityError if it identifies neither
	// a user nor a service, and with auth.ErrNoKeys if that cannot be said.
	Verify(ctx context.Context, token string) (auth.Caller, error)
}

// ScrapeCheck checks the static token of the metrics; auth.ScrapeToken does.
type ScrapeCheck interface {
	// Check fails unless the token is the one of the metrics.
	Check(token string) error
}

// PeerCheck says whether a request is from another process of the product; auth.Peers does.
type PeerCheck interface {
	Check(r *http.Request) error
}

// access is who may make a call. The zero access lets everybody, without a token.
type access struct {
	scope  string // with which a service's token opens it for everybody's data; "": no token is needed
	users  whose  // what the token of a user opens without the scope
	parts  bool   // scopes below it, such as events:pins, admit a caller too; the handler checks what they permit
	scrape bool   // the static token of the metrics opens it, too
}

// whose data a user's own token opens.
type whose int

const (
	nobodys whose = iota
	own           // that of the user in the path
	all           // of everybody: it is published
)

// class is what a call is bounded with.
func (a access) class() string {
	if a.scope == "" {
		return "open"
	}
	return a.scope
}

// check returns nil for whoever may make the call. Scopes are a service's: one in a user's token, which whoever issues tokens
// may put into all of them, opens nobody else's data.
func (a access) check(c auth.Caller, r *http.Request) error {
	switch {
	case a.scope == "", c.User == "" && a.permits(c), c.User != "" && a.users == all:
		return nil
	case a.users == own && c.User != "" && r.PathValue("user") == string(c.User):
		return nil
	}
	p := problem(http.StatusForbidden, "%s", a.needs())
	p.challenge = `Bearer error="insufficient_scope", scope="` + a.scope + `"`
	return p
}

func (a access) permits(c auth.Caller) bool {
	below := func(scope string) bool { return strings.HasPrefix(scope, a.scope+":") }
	return c.May(a.scope) || a.parts && slices.ContainsFunc(c.Scopes, below)
}

func (a access) needs() string {
	switch a.users {
	case own:
		return "this needs the token of the user, or a service's with the scope " + a.scope
	case all:
		return "this needs a user's token, or a service's with the scope " + a.scope
	}
	return "this needs a service's token with the scope " + a.scope
}

// callerKey is where the context of a request has its auth.Caller.
type callerKey struct{}

// callerOf returns who sent a request; the zero Caller if nobody was asked.
func callerOf(r *http.Request) auth.Caller {
	c, _ := r.Context().Value(callerKey{}).(auth.Caller)
	return c
}

// admit lets a request through whose caller may make the call and is within his rate. Who that is it returns where callers
// are asked, and have said it.
func (s *Server) admit(a access, r *http.Request) (auth.Caller, error) {
	if s.deps.Auth == nil { // addresses are then this machine's, or those of what stands in front: of everybody
		return auth.Caller{}, nil
	}
	token, given := auth.Bearer(r)
	if !given {
		if err := s.withinAddress(r); err != nil || a.scope == "" {
			return auth.Caller{}, err
		}
		p := problem(http.StatusUnauthorized, "%s", a.needs())
		p.challenge = "Bearer"
		return auth.Caller{}, p
	}
	if a.scrape && s.isScraper(token) {
		return auth.Caller{Subject: scraper}, tooMany(s.callers.Service(scraper))
	}
	c, err := s.deps.Auth.Verify(r.Context(), token)
	if err != nil {
		if within := s.withinAddress(r); within != nil || a.scope == "" { // what is open is so for bad tokens, too
			return auth.Caller{}, within
		}
		return auth.Caller{}, unverified(err)
	}
	if err := s.within(c); err != nil {
		return auth.Caller{}, err
	}
	return c, a.check(c, r)
}

// scraper is the name of callers with the static token of the metrics.
const scraper = "metrics.token_file"

// isScraper reports whether a token is the static one of the metrics.
func (s *Server) isScraper(token string) bool {
	if s.deps.Scrape == nil {
		return false
	}
	err := s.deps.Scrape.Check(token)
	var refused *auth.TokenError
	if err != nil && !errors.As(err, &refused) {
		s.log.Warn("cannot check the token of a scrape", "error", err)
	}
	return err == nil
}

// unverified is the answer to a token that is not taken.
func unverified(err error) error {
	var refused *auth.TokenError
	var neither *auth.IdentityError
	switch {
	case errors.As(err, &neither):
		p := problem(http.StatusForbidden, "%v", neither)
		p.challenge = `Bearer error="insufficient_scope"`
		return p
	case errors.As(err, &refused):
		p := problem(http.StatusUnauthorized, "%v", refused)
		p.challenge = `Bearer error="invalid_token"`
		return p
	case errors.Is(err, auth.ErrNoKeys):
		return unavailable("%v", auth.ErrNoKeys)
	}
	return err
}

// within takes the request off the caller's rate.
func (s *Server) within(c auth.Caller) error {
	if c.User != "" {
		return tooMany(s.callers.User(c.Subject))
	}
	return tooMany(s.callers.Service(c.Subject))
}

// withinAddress does the same for who is known by his address alone.
func (s *Server) withinAddress(r *http.Request) error {
	return tooMany(s.callers.Address(r.RemoteAddr))
}

// tooMany is a 429 unless there was a request left.
func tooMany(again time.Duration, ok bool) error {
	if ok {
		return nil
	}
	p := problem(http.StatusTooManyRequests, "more requests than one caller may send; the next one in %s", again.Round(time.Millisecond))
	p.retryAfter = max(1, int(math.Ceil(again.Seconds())))
	return p
}

// checkPeer lets other processes of the product through.
func (s *Server) checkPeer(r *http.Request) error {
	if s.deps.Peers == nil {
		return nil
	}
	if err := s.deps.Peers.Check(r); err != nil {
		return unverified(err)
	}
	return nil
}
