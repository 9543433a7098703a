package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/peers"
)

// handler handles a call of the API. Its error is answered as a problem document.
type handler func(w http.ResponseWriter, r *http.Request) error

// route is one call.
type route struct {
	method, path string
	access       access
	handle       handler
	kind         kind
}

// kind determines which limits apply to a call.
type kind int

const (
	request  kind = iota // limited by time and by the requests in flight
	stream               // limited by the open streams, not by time
	probe                // limited only by time, so that monitoring works even when the server is at capacity
	scraping             // limited by time and by the scrapes in flight
	trial                // limited by time and by the trials in flight, which take no places of other requests
)

// routes returns the calls whose dependencies are set, in the order of the OpenAPI document.
func (s *Server) routes() []route {
	return slices.Concat(
		present(s.deps.Feed != nil,
			route{method: "GET", path: "/v1/users/{user}/feed", access: access{scope: auth.Feed, users: own}, handle: s.feed},
			route{method: "GET", path: "/v1/users/{user}/feed/new", access: access{scope: auth.Feed, users: own}, handle: s.waiting},
			route{method: "GET", path: "/v1/users/{user}/feed/events", access: access{scope: auth.Feed, users: own}, handle: s.waitingStream, kind: stream},
			route{method: "GET", path: "/v1/users/{user}/pins", access: access{scope: auth.Feed, users: all}, handle: list(s, "user", schemas.ParseUserID)},
			route{method: "GET", path: "/v1/boards/{board}/pins", access: access{scope: auth.Feed, users: all}, handle: list(s, "board", schemas.ParseBoardID)},
			route{method: "GET", path: "/v1/interests/{interest}/pins", access: access{scope: auth.Feed, users: all}, handle: list(s, "interest", schemas.ParseInterestID)},
			route{method: "GET", path: "/v1/pins/{pin}/related", access: access{scope: auth.Feed, users: all}, handle: s.relatedPins},
			route{method: "GET", path: "/v1/interests/{interest}/related", access: access{scope: auth.Feed, users: all}, handle: s.relatedInterests},
			route{method: "GET", path: "/v1/users/{user}/feed/why", access: access{scope: auth.Feed, users: own}, handle: s.why},
			route{method: "GET", path: "/v1/users/{user}/feed/state", access: access{scope: auth.Feed, users: own}, handle: s.feedState},
			route{method: "GET", path: "/v1/users/{user}/pools", access: access{scope: auth.Feed, users: own}, handle: s.pool},
		),
		present(s.deps.Features != nil,
			route{method: "GET", path: "/v1/features", access: access{scope: auth.Features}, handle: s.definitions},
			route{method: "POST", path: "/v1/features", access: access{scope: auth.Features}, handle: s.features},
			route{method: "POST", path: "/v1/features/attributes", access: access{scope: auth.Features}, handle: s.attributes},
			route{method: "POST", path: "/v1/features/try", access: access{scope: auth.Features}, handle: s.try, kind: trial},
		),
		present(s.deps.Insights != nil,
			route{method: "GET", path: "/v1/insights/growth", access: access{scope: auth.Operate}, handle: s.growth},
			route{method: "GET", path: "/v1/insights/xd28s", access: access{scope: auth.Operate}, handle: s.xd28s},
			route{method: "GET", path: "/v1/insights/retention", access: access{scope: auth.Operate}, handle: s.retention},
			route{method: "GET", path: "/v1/insights/funnel", access: access{scope: auth.Operate}, handle: s.funnel},
			route{method: "GET", path: "/v1/insights/popularity", access: access{scope: auth.Operate}, handle: s.popularity},
		),
		present(s.deps.Publisher != nil,
			route{method: "POST", path: "/v1/events", access: access{scope: auth.Events, parts: true}, handle: s.events},
		),
		present(s.deps.DeadLetters != nil,
			route{method: "GET", path: "/v1/deadletters", access: access{scope: auth.Operate}, handle: s.deadLetters},
			route{method: "POST", path: "/v1/deadletters/retry", access: access{scope: auth.Operate}, handle: s.retryDeadLetters},
			route{method: "GET", path: "/v1/deadletters/kinds", access: access{scope: auth.Operate}, handle: s.retryKinds},
			route{method: "GET", path: "/v1/deadletters/retries", access: access{scope: auth.Operate}, handle: s.retriedLetters},
			route{method: "POST", path: "/v1/deadletters/limits", access: access{scope: auth.Operate}, handle: s.limitRetries},
		),
		present(s.deps.Dictionary != nil,
			route{method: "GET", path: "/v1/users/{user}/interests", access: access{scope: auth.Feed, users: own}, handle: s.interests},
			route{method: "GET", path: "/v1/interests/{interest}/engagement", access: access{scope: auth.Operate}, handle: s.engagement},
			route{method: "GET", path: "/v1/dictionary", access: access{scope: auth.Operate}, handle: s.dictionary},
			route{method: "POST", path: "/v1/dictionary/decisions", access: access{scope: auth.Operate}, handle: s.decide},
		),
		[]route{
			{method: "GET", path: "/v1/status", access: access{scope: auth.Operate}, handle: s.status},
			{method: "GET", path: "/v1/openapi.json", handle: s.openAPI},
			{method: "GET", path: "/healthz", handle: s.healthy, kind: probe},
			{method: "GET", path: "/readyz", handle: s.ready, kind: probe},
			{method: "GET", path: "/metrics", access: access{scope: auth.Operate, scrape: true}, handle: s.scrape(), kind: scraping},
		})
}

// present returns the routes if here is set.
func present(here bool, routes ...route) []route {
	if !here {
		return nil
	}
	return routes
}

// handler returns the handler of all routes with the checks that apply to every request.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, r := range s.routes() {
		h := s.instrument(r.path, s.traced(r, s.bounded(r)))
		if r.kind == request || r.kind == trial {
			h = s.pack(h)
		}
		mux.Handle(r.method+" "+r.path, h)
		allowed[r.path] = append(allowed[r.path], r.method)
	}
	for path, methods := range allowed { // a pattern without a method is less specific and gets the rest
		mux.Handle(path, s.instrument(path, s.problems(wrongMethod(methods...))))
	}
	if s.deps.Peer != nil {
		mux.Handle(peers.Path, s.instrument(peers.Path, s.problems(s.peer)))
	}
	mux.Handle("/v1/", s.instrument("/v1/", s.problems(noSuchCall)))
	mux.Handle("/", s.pack(s.instrument("/", s.problems(s.console))))
	return s.identified(mux)
}

// console answers every request that is not a call of the API.
func (s *Server) console(w http.ResponseWriter, r *http.Request) error {
	switch {
	case s.deps.Console == nil:
		return noSuchCall(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return wrongMethod(http.MethodGet)(w, r)
	}
	s.deps.Console.ServeHTTP(w, r)
	return nil
}

func noSuchCall(_ http.ResponseWriter, r *http.Request) error {
	return problem(http.StatusNotFound, "there is no %s %s in this process; /v1/openapi.json lists what there can be", r.Method, r.URL.Path)
}

// wrongMethod answers with the allowed methods. net/http answers HEAD wherever GET is allowed.
func wrongMethod(methods ...string) handler {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(slices.Clone(methods), http.MethodHead)
	}
	return onlyMethods(methods...)
}

// onlyMethods answers with the allowed methods.
func onlyMethods(methods ...string) handler {
	allow := strings.Join(methods, ", ")
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allow)
		return problem(http.StatusMethodNotAllowed, "%s takes %s, not %s", r.URL.Path, allow, r.Method)
	}
}

// bounded rejects requests above the limit of requests in flight or streams, requests that another site makes a browser
// send, callers without permission, and callers above their rate. The limit comes first, because this rejection costs the
// least.
func (s *Server) bounded(r route) http.Handler {
	return s.problems(func(w http.ResponseWriter, req *http.Request) error {
		place, err := s.enter(r)
		if err != nil {
			return err
		}
		defer place.leave()
		if err := notForeign(req); err != nil {
			return err
		}
		if r.kind == probe {
			return r.handle(w, req)
		}
		caller, err := s.admit(r.access, req)
		if r.access.scope == auth.Operate || r.access.scope == auth.Events {
			req = attributed(caller, r.access, w, req)
		}
		if err != nil {
			return err
		}
		leave, err := s.hold(r.kind, caller, req)
		if err != nil {
			return err
		}
		defer leave()
		req = req.WithContext(context.WithValue(req.Context(), callerKey{}, caller))
		if r.kind == stream && !caller.Expires.IsZero() { // any other request ends soon
			ctx, cancel := context.WithTimeout(req.Context(), caller.Expires.Sub(s.deps.Now()))
			defer cancel()
			req = req.WithContext(ctx)
		}
		return r.handle(w, place.with(caller, req))
	})
}

// peer answers another process of the deployment. Its calls have their own places, because the process that sends them has
// already admitted the original request.
func (s *Server) peer(w http.ResponseWriter, r *http.Request) error {
	if !s.gates.Enter(peerClass) {
		return overloaded()
	}
	defer s.gates.Leave(peerClass)
	if err := notForeign(r); err != nil {
		return err
	}
	if err := s.checkPeer(r); err != nil {
		return err
	}
	s.tracePeer(w, r, s.deps.Peer)
	return nil
}

const peerClass = "peer"

// problems writes the error of h, or the error for an unknown host name, as a problem document. A panic is a bug of this
// program and fails only this request. If the answer has already started, problems aborts the connection, so that the client
// does not take the answer for complete.
func (s *Server) problems(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler {
				panic(cause) // net/http's own way to abort a connection
			}
			s.answerError(w, r, fmt.Errorf("handle request: panic: %v\n%s", cause, debug.Stack()))
		}()
		err := s.notRenamed(r)
		if err == nil {
			err = h(w, r)
		}
		if err != nil {
			s.answerError(w, r, err)
		}
	})
}
