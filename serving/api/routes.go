package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/smartfeed/smartfeed/schemas"
)

// handler is a call of the API. What it returns is answered as a problem document.
type handler func(w http.ResponseWriter, r *http.Request) error

// route is one call. Streams are bounded by a number of their own and not by time.
type route struct {
	method, path string
	handle       handler
	stream       bool
}

// routes are all calls of the API, in the order of the document that describes them.
func (s *Server) routes() []route {
	return []route{
		{method: "GET", path: "/v1/users/{user}/feed", handle: s.feed},
		{method: "GET", path: "/v1/users/{user}/feed/new", handle: s.waiting},
		{method: "GET", path: "/v1/users/{user}/feed/events", handle: s.waitingStream, stream: true},
		{method: "GET", path: "/v1/users/{user}/pools", handle: s.pool},
		{method: "GET", path: "/v1/users/{user}/pins", handle: list(s, "user", schemas.ParseUserID)},
		{method: "GET", path: "/v1/boards/{board}/pins", handle: list(s, "board", schemas.ParseBoardID)},
		{method: "GET", path: "/v1/interests/{interest}/pins", handle: list(s, "interest", schemas.ParseInterestID)},
		{method: "GET", path: "/v1/features", handle: s.definitions},
		{method: "POST", path: "/v1/features", handle: s.features},
		{method: "POST", path: "/v1/events", handle: s.events},
		{method: "GET", path: "/v1/status", handle: s.status},
		{method: "GET", path: "/v1/openapi.json", handle: s.openAPI},
		{method: "GET", path: "/healthz", handle: s.healthy},
		{method: "GET", path: "/readyz", handle: s.ready},
	}
}

// handler puts the routes together with what every request goes through.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, r := range s.routes() {
		mux.Handle(r.method+" "+r.path, s.instrument(r.path, s.bounded(r)))
		allowed[r.path] = append(allowed[r.path], r.method)
	}
	for path, methods := range allowed { // a pattern without a method is less specific: it gets the rest
		mux.Handle(path, s.instrument(path, s.problems(wrongMethod(methods))))
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.deps.Gatherer, promhttp.HandlerOpts{}))
	mux.Handle("/v1/", s.instrument("/v1/", s.problems(noSuchCall)))
	mux.Handle("/", s.instrument("/", s.console()))
	return s.identified(mux)
}

// console answers whatever is no call of the API.
func (s *Server) console() http.Handler {
	none := s.problems(noSuchCall)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.deps.Console == nil || (r.Method != http.MethodGet && r.Method != http.MethodHead) {
			none.ServeHTTP(w, r)
			return
		}
		s.deps.Console.ServeHTTP(w, r)
	})
}

func noSuchCall(_ http.ResponseWriter, r *http.Request) error {
	return problem(http.StatusNotFound, "there is no %s %s; /v1/openapi.json lists what there is", r.Method, r.URL.Path)
}

func wrongMethod(methods []string) handler {
	allow := strings.Join(methods, ", ")
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allow)
		return problem(http.StatusMethodNotAllowed, "%s takes %s, not %s", r.URL.Path, allow, r.Method)
	}
}

// bounded refuses what is above the number of requests, or of streams, at once.
func (s *Server) bounded(r route) http.Handler {
	places, most := s.requests, s.cfg.MaxRequests
	if r.stream {
		places, most = s.streams, s.cfg.MaxStreams
	}
	return s.problems(func(w http.ResponseWriter, req *http.Request) error {
		if !places.TryAcquire(1) {
			return unavailable("%d requests are under way, which is the most", most)
		}
		defer places.Release(1)
		return r.handle(w, req)
	})
}

// problems answers what h returns, and a panic as what it is: a mistake of this program, for this request alone.
func (s *Server) problems(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if cause := recover(); cause != nil {
				if cause == http.ErrAbortHandler {
					panic(cause) // net/http's own way to give a connection up
				}
				s.writeProblem(w, r, fmt.Errorf("handle request: panic: %v", cause))
			}
		}()
		if err := h(w, r); err != nil {
			s.writeProblem(w, r, err)
		}
	})
}
