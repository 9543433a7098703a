package api

import (
	"context"
	"net/http"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/limit"
)

// place is a request's share of the limit of requests in flight. The request gives it up while it waits for its body, so
// that slow senders do not occupy the places of others.
type place struct {
	server *Server
	route  route
	holder string // the caller, "" while it is unknown or if it has no limit
	held   bool
}

// enter takes a place for a call. The caller must call leave.
func (s *Server) enter(r route) (*place, error) {
	p := &place{server: s, route: r}
	if places, most := s.places(r.kind); places != nil {
		return p, p.take(places.TryAcquire(1), most)
	}
	return p, p.take(r.kind == probe || s.gates.Enter(r.access.class()), 0)
}

// again takes the place back. It returns an error if all places are taken.
func (p *place) again() error {
	if places, most := p.server.places(p.route.kind); places != nil {
		return p.take(places.TryAcquire(1), most)
	}
	return p.take(p.route.kind == probe || p.server.gates.Return(p.route.access.class()), 0)
}

func (p *place) take(ok bool, most int) error {
	p.held = ok
	switch {
	case ok:
		return nil
	case most > 0:
		return unavailable("%d requests of this kind are under way, which is the most", most)
	}
	return overloaded()
}

// leave returns the place, if the request has it.
func (p *place) leave() {
	if !p.held {
		return
	}
	p.held = false
	if places, _ := p.server.places(p.route.kind); places != nil {
		places.Release(1)
	} else if p.route.kind != probe {
		p.server.gates.Leave(p.route.access.class())
	}
}

// places returns the places of kinds of calls that have a fixed number, and nil for the others.
func (s *Server) places(k kind) (places *semaphore.Weighted, most int) {
	switch k {
	case stream:
		return s.streams, s.cfg.MaxStreams
	case scraping:
		return s.scrapes, maxScrapes
	case trial:
		return s.trials, maxTrials
	}
	return nil, 0
}

func overloaded() *Problem {
	return unavailable("as many requests of this kind are under way as there is time for, which is the most")
}

// placeKey is the context key of the place of a request that can have a body.
type placeKey struct{}

// with adds the place to the context of a request that can have a body.
func (p *place) with(c auth.Caller, r *http.Request) *http.Request {
	if r.Method != http.MethodPost {
		return r
	}
	if who, bounded := holder(c, r); bounded {
		p.holder = who
	}
	return r.WithContext(context.WithValue(r.Context(), placeKey{}, p))
}

// hold takes one of a caller's streams, or of a user's requests, until leave is called. The requests of services and of
// addresses without a token have only the common limit: a service acts for many users, and many clients can share an
// address.
func (s *Server) hold(k kind, c auth.Caller, r *http.Request) (leave func(), err error) {
	switch {
	case k == stream && c.Subject != "" && c.User == "":
		return held(s.services, c.Subject, "streams", s.cfg.ServiceStreams)
	case k == stream:
		if who, bounded := holder(c, r); bounded {
			return held(s.held, who, "streams", s.cfg.CallerStreams)
		}
	case k == request && c.User != "":
		return held(s.asking, c.Subject, "requests", s.cfg.CallerRequests)
	}
	return func() {}, nil
}

func held(by *limit.Held, who, what string, most int) (leave func(), err error) {
	leave, ok := by.Take(who)
	if !ok {
		p := problem(http.StatusTooManyRequests, "%d %s of one caller are under way, which is the most", most, what)
		p.retryAfter = 1
		return nil, p
	}
	return leave, nil
}

// holder returns the caller that a stream or body counts for, and whether that caller has a limit.
func holder(c auth.Caller, r *http.Request) (who string, bounded bool) {
	if c.Subject != "" {
		return "t" + c.Subject, true
	}
	who, bounded = limit.AddressOf(r.RemoteAddr)
	return "a" + who, bounded
}
