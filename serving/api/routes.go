package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/internal/foreign"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/peers"
)

// handler handles a call of the API. Its error is answered as a problem document.
type handler func(w http.ResponseWriter, r *http.Request) error

// route is one call. A call without a body is a query; any other call has a handler.
type route struct {
	method, path string
	access       access
	kind         kind
	handle       handler
	query        query
	data         string // what the query reads, for the 503 if that is unavailable; "": the error decides about the answer
	list         string // the key of the query's answer, which is a list; "": the answer is an object
}

// query reads the parameters of a call, and returns the function that computes the answer. It is called only if all
// parameters are valid.
type query func(p *parameters) computation

// computation returns an answer, which is encoded as JSON.
type computation func(ctx context.Context) (any, error)

// listOf returns the result of a computation that returns a list, which JSON encodes as [] even if it is nil.
func listOf[T any](found []T, err error) (any, error) { return schemas.List[T](found), err }

// kind determines which limits apply to a call.
type kind string

const (
	request  kind = ""        // limited by time and by the requests in flight
	stream   kind = "streams" // limited by the open streams, not by time
	probe    kind = "probes"  // limited only by time, so that monitoring works even when the server is at capacity
	scraping kind = "scrapes" // limited by time and by the scrapes in flight
	trial    kind = "trials"  // limited by time and by the trials in flight, which have a separate limit
)

// class returns the class of the call for the limits of requests in flight; "" has no limit.
func (r route) class() string {
	switch r.kind {
	case request:
		return r.access.class()
	case probe:
		return ""
	}
	return string(r.kind)
}

const get, post = http.MethodGet, http.MethodPost

// routes returns the calls whose dependencies are set, in the order of the OpenAPI document.
func (s *Server) routes() []route {
	return slices.Concat(s.feedRoutes(), s.featureRoutes(), s.inspectionRoutes(), s.processRoutes())
}

func (s *Server) feedRoutes() (all []route) {
	var (
		visit     = access{scope: auth.Feed, users: ownData}
		private   = access{scope: auth.Feed, users: ownData, view: true}
		published = access{scope: auth.Feed, users: allData, view: true}
	)
	if s.deps.Feed != nil {
		all = append(all,
			route{method: get, path: "/v1/users/{user}/feed", access: private, query: s.feed},
			route{method: post, path: "/v1/users/{user}/visits", access: visit, query: s.visit},
			route{method: get, path: "/v1/users/{user}/feed/new", access: private, query: s.waiting, data: "the pools"},
			route{method: get, path: "/v1/users/{user}/feed/events", access: private, handle: s.waitingStream, kind: stream},
			route{method: get, path: "/v1/users/{user}/pins", access: published, query: pinsOf(s, "user", schemas.ParseUserID)},
			route{method: get, path: "/v1/boards/{board}/pins", access: published, query: pinsOf(s, "board", schemas.ParseBoardID)},
			route{method: get, path: "/v1/interests/{interest}/pins", access: published, query: pinsOf(s, "interest", schemas.ParseInterestID)},
			route{method: get, path: "/v1/pins/{pin}/related", access: published, query: s.relatedPins},
			route{method: get, path: "/v1/interests/{interest}/related", access: published, query: s.relatedInterests},
			route{method: get, path: "/v1/users/{user}/feed/why", access: private, query: s.why, data: "the pools"},
			route{method: get, path: "/v1/users/{user}/feed/state", access: private, query: s.feedState, data: "the pools"},
			route{method: get, path: "/v1/users/{user}/pools", access: private, query: s.pool, data: "the pools"},
		)
	}
	if s.deps.Directory != nil {
		all = append(all,
			route{method: get, path: "/v1/users", access: access{scope: auth.Feed, view: true}, query: s.users, list: "users", data: "the users"},
			route{method: get, path: "/v1/users/{user}/graph", access: private, query: s.graph, data: "the edges"},
		)
	}
	return all
}

func (s *Server) featureRoutes() []route {
	if s.deps.Features == nil {
		return nil
	}
	features := access{scope: auth.Features, view: true}
	return []route{
		{method: get, path: "/v1/features", access: features, query: s.definitions},
		{method: post, path: "/v1/features", access: features, handle: postObject(s, s.postFeatures)},
		{method: post, path: "/v1/features/attributes", access: features, handle: postJSON(s, s.deps.Features.Attributes)},
		{method: post, path: "/v1/features/try", access: features, handle: postJSON(s, s.deps.Features.Try), kind: trial},
	}
}

// inspectionRoutes returns the calls about the product and its events.
func (s *Server) inspectionRoutes() (all []route) {
	inspect, operate := access{scope: auth.Operate, view: true}, access{scope: auth.Operate}
	if s.deps.Insights != nil {
		all = append(all,
			route{method: get, path: "/v1/insights/growth", access: inspect, query: s.growth, list: "days", data: "the insights"},
			route{method: get, path: "/v1/insights/xd28s", access: inspect, query: s.xd28s, list: "xd28s", data: "the insights"},
			route{method: get, path: "/v1/insights/retention", access: inspect, query: s.retention, list: "cohorts", data: "the insights"},
			route{method: get, path: "/v1/insights/funnel", access: inspect, query: s.funnel, list: "steps", data: "the insights"},
			route{method: get, path: "/v1/insights/experiments", access: inspect, query: s.experiments, list: "feeds", data: "the insights"},
			route{method: get, path: "/v1/insights/popularity", access: inspect, query: s.popularity, list: "interests", data: "the insights"},
		)
	}
	if s.deps.Publisher != nil {
		all = append(all, route{method: post, path: "/v1/events", access: access{scope: auth.Events, parts: true}, handle: s.events})
	}
	if s.deps.DeadLetters != nil {
		all = append(all,
			route{method: get, path: "/v1/dead-letters", access: inspect, query: s.deadLetters, list: "dead_letters", data: "the dead letters"},
			route{method: post, path: "/v1/dead-letters/retry", access: operate, query: s.retryDeadLetters},
			route{method: get, path: "/v1/dead-letters/kinds", access: inspect, query: s.retryKinds, list: "kinds", data: "the state of the retries"},
			route{method: get, path: "/v1/dead-letters/retries", access: inspect, query: s.retriedDeadLetters, list: "dead_letters", data: "the state of the retries"},
			route{method: post, path: "/v1/dead-letters/limits", access: operate, handle: postJSON(s, s.limitRetries)},
		)
	}
	if s.deps.Dictionary != nil {
		all = append(all,
			route{method: get, path: "/v1/users/{user}/interests", access: access{scope: auth.Feed, users: ownData, view: true}, query: s.interests, list: "interests", data: "the interests"},
			route{method: get, path: "/v1/interests/{interest}/engagement", access: inspect, query: s.engagement, list: "sources", data: "the engagement"},
			route{method: get, path: "/v1/dictionary", access: inspect, query: s.dictionary, list: "terms", data: "the dictionary"},
			route{method: post, path: "/v1/dictionary/decisions", access: operate, handle: postJSON(s, s.decide)},
		)
	}
	return all
}

// processRoutes returns the calls about this process.
func (s *Server) processRoutes() (all []route) {
	inspect := access{scope: auth.Operate, view: true}
	if s.deps.Config != nil {
		all = append(all, route{method: get, path: "/v1/config", access: inspect, query: s.config})
	}
	all = append(all,
		route{method: get, path: "/v1/status", access: inspect, query: s.status},
		route{method: get, path: "/v1/caller", query: s.caller},
		route{method: get, path: "/v1/openapi.json", handle: s.openAPI},
	)
	if s.deps.Console != nil {
		all = append(all, route{method: get, path: "/docs", handle: s.docs})
	}
	all = append(all,
		route{method: get, path: "/healthz", handle: s.healthy, kind: probe},
		route{method: get, path: "/readyz", handle: s.ready, kind: probe},
		route{method: get, path: "/metrics", access: access{scope: auth.Operate, view: true, scrape: true}, handle: s.scrape(), kind: scraping},
	)
	return all
}

// answer handles a request of the route.
func (r route) answer(w http.ResponseWriter, req *http.Request) error {
	if r.handle != nil {
		return r.handle(w, req)
	}
	p := parametersOf(req)
	compute := r.query(p)
	if err := p.err(); err != nil {
		return err
	}
	answer, err := compute(req.Context())
	switch {
	case err != nil && r.data != "" && problemOf(err).Status >= http.StatusInternalServerError:
		return unavailable("%s cannot be read at the moment", r.data).because(err)
	case err != nil:
		return err
	case r.list != "":
		answer = map[string]any{r.list: answer}
	}
	return writeJSON(w, http.StatusOK, answer)
}

// handler returns the handler of all routes with the checks that apply to every request.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, r := range s.routes() {
		h := s.instrument(r.path, s.traced(r, s.bounded(r)))
		if r.kind == request || r.kind == trial {
			h = s.compress(h)
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
	mux.Handle("/", s.compress(s.instrument("/", s.problems(s.console))))
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

// docs answers with the page of the console that renders the OpenAPI document.
func (s *Server) docs(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	return s.console(w, r)
}

func noSuchCall(_ http.ResponseWriter, r *http.Request) error {
	return problem(http.StatusNotFound, "no route for %s %s in this process; see /v1/openapi.json", r.Method, r.URL.Path)
}

// wrongMethod answers with the allowed methods. net/http answers HEAD wherever GET is allowed.
func wrongMethod(methods ...string) handler {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(slices.Clone(methods), http.MethodHead)
	}
	return func(_ http.ResponseWriter, r *http.Request) error { return onlyMethods(r, methods...) }
}

// onlyMethods returns the answer to another method than the allowed ones.
func onlyMethods(r *http.Request, methods ...string) *Problem {
	allow := strings.Join(methods, ", ")
	return problem(http.StatusMethodNotAllowed, "method %s is not allowed for %s; use %s", r.Method, r.URL.Path, allow).with("Allow", allow)
}

// bounded rejects requests above the limit of requests in flight or streams, requests that another site makes a browser
// send, callers without permission, and callers above their rate. The limit comes first, because this rejection costs the
// least.
func (s *Server) bounded(r route) http.Handler {
	return s.problems(func(w http.ResponseWriter, req *http.Request) error {
		slot, err := s.enter(r.class())
		if err != nil {
			return err
		}
		defer slot.leave()
		if foreign.Change(req) {
			return crossSite()
		}
		if r.kind == probe {
			return r.answer(w, req)
		}
		caller, err := s.admit(r.access, req)
		a := answerOf(req.Context())
		a.caller, a.slot, a.audited = caller, slot, r.access.scope == auth.Operate
		if err != nil {
			return err
		}
		leave, err := s.hold(r.kind, caller, req)
		if err != nil {
			return err
		}
		defer leave()
		if who, bounded := holder(caller, req); bounded {
			slot.holder = who // of the body, if there is one
		}
		if r.kind == stream && !caller.Expires.IsZero() { // any other request ends soon
			ctx, cancel := context.WithTimeout(req.Context(), caller.Expires.Sub(s.deps.Now()))
			defer cancel()
			req = req.WithContext(ctx)
		}
		return r.answer(w, req)
	})
}

// peer answers another process of the deployment. Its calls have their own limit, because the process that sends them has
// already admitted the original request.
func (s *Server) peer(w http.ResponseWriter, r *http.Request) error {
	slot, err := s.enter(peerClass)
	if err != nil {
		return err
	}
	defer slot.leave()
	if foreign.Change(r) {
		return crossSite()
	}
	if s.deps.Peers != nil {
		if err := s.deps.Peers(r); err != nil {
			return unverified(err)
		}
	}
	s.tracePeer(w, r, s.deps.Peer)
	return nil
}

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
		err := s.checkHost(r)
		if err == nil {
			err = h(w, r)
		}
		if err != nil {
			s.answerError(w, r, err)
		}
	})
}
