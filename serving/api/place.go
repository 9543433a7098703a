package api

import (
	"context"
	"net/http"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/limit"
)

// place is what a request takes of what bounds those that are under way. It is left while the request waits for what its
// caller sends, so that nobody takes the places of others by sending slowly.
type place struct {
	server *Server
	route  route
	holder string // whose the request is, "" until that is known, and for whom there is no bound
	held   bool
}

// enter takes a place for a call; leave must follow.
func (s *Server) enter(r route) (*place, error) {
	p := &place{server: s, route: r}
	if places, most := s.places(r.kind); places != nil {
		return p, p.take(places.TryAcquire(1), most)
	}
	return p, p.take(r.kind == probe || s.gates.Enter(r.access.class()), 0)
}

// again takes the place that was left; it is refused if there is none at all.
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

// leave gives the place back, if the request has it.
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

// places are those of the kinds of calls that have a fixed number; nil: the others.
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

// placeKey is where the context of a request that can have a body has its place.
type placeKey struct{}

// with has what reads the body of a request know its place.
func (p *place) with(c auth.Caller, r *http.Request) *http.Request {
	if r.Method != http.MethodPost {
		return r
	}
	if who, bounded := holder(c, r); bounded {
		p.holder = who
	}
	return r.WithContext(context.WithValue(r.Context(), placeKey{}, p))
}

// holder returns who holds a stream or a body, and whether there is a bound for them.
func holder(c auth.Caller, r *http.Request) (who string, bounded bool) {
	if c.Subject != "" {
		return "t" + c.Subject, true
	}
	who, bounded = limit.AddressOf(r.RemoteAddr)
	return "a" + who, bounded
}
