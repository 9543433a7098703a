package api

import (
	"context"
	"net/http"

	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/limit"
)

// Classes of calls with separate limits. Other calls have the class of their access.
const (
	streamClass = "streams"
	scrapeClass = "scrapes"
	trialClass  = "trials"
	peerClass   = "peer"
)

// fixedLimits are the limits that do not follow the load.
func (c Config) fixedLimits() map[string]int {
	return map[string]int{streamClass: c.MaxStreams, scrapeClass: maxScrapes, trialClass: maxTrials}
}

// slot is a request's share of the limit of requests in flight. The request releases it while it waits for its body, so
// that slow senders do not occupy the slots of others.
type slot struct {
	gates  *limit.Gates
	class  string // "": no limit
	holder string // the caller, "" while it is unknown or if it has no limit
	held   bool
}

// enter takes a slot for a call of a class. The caller must call leave.
func (s *Server) enter(class string) (*slot, error) {
	p := &slot{gates: s.gates, class: class}
	return p, p.take(s.gates.Enter)
}

// retake takes the slot again. It returns an error if all slots are taken.
func (p *slot) retake() error { return p.take(p.gates.Return) }

func (p *slot) take(enter func(class string) bool) error {
	if p.held = p.class == "" || enter(p.class); !p.held {
		return unavailable("at capacity: too many requests of this kind are in flight")
	}
	return nil
}

// leave returns the slot, if the request has it.
func (p *slot) leave() {
	if p.held && p.class != "" {
		p.gates.Leave(p.class)
	}
	p.held = false
}

// slotKey is the context key of the slot of a request that can have a body.
type slotKey struct{}

// with adds the slot to the context of a request that can have a body.
func (p *slot) with(c auth.Caller, r *http.Request) *http.Request {
	if r.Method != http.MethodPost {
		return r
	}
	if who, bounded := holder(c, r); bounded {
		p.holder = who
	}
	return r.WithContext(context.WithValue(r.Context(), slotKey{}, p))
}

// hold takes one of a caller's streams, or of a user's requests, until leave is called. The requests of services and of
// addresses without a token have only the common limit: a service acts for many users, and many clients can share an
// address.
func (s *Server) hold(k kind, c auth.Caller, r *http.Request) (leave func(), err error) {
	who, bounded := holder(c, r)
	switch {
	case k == stream && c.Subject != "" && c.User == "":
		return held(s.serviceStreams, who, "streams")
	case k == stream && bounded:
		return held(s.callerStreams, who, "streams")
	case k == request && c.User != "":
		return held(s.userRequests, who, "requests")
	}
	return func() {}, nil
}

func held(by *limit.Budget, who, what string) (leave func(), err error) {
	share := by.Share(who)
	if share.Grow(1) != nil {
		p := problem(http.StatusTooManyRequests, "the caller has too many %s in flight", what)
		p.retryAfter = 1
		return nil, p
	}
	return share.End, nil
}

// holder returns the caller that a stream or body counts for, and whether that caller has a limit.
func holder(c auth.Caller, r *http.Request) (who string, bounded bool) {
	if c.Subject != "" {
		return "t" + c.Subject, true
	}
	who, bounded = limit.AddressOf(r.RemoteAddr)
	return "a" + who, bounded
}
