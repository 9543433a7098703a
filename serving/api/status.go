package api

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/smartfeed/smartfeed/schemas"
)

func (s *Server) status(*parameters) computation {
	return func(ctx context.Context) (any, error) { return s.deps.Status(ctx), nil }
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready   bool                 `json:"ready"`
	Missing schemas.List[string] `json:"missing"` // the reasons why it is not ready
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) error {
	reasons := s.deps.Ready()
	status := http.StatusOK
	if len(reasons) > 0 {
		w.Header().Set("Retry-After", "1")
		status = http.StatusServiceUnavailable
	}
	return writeJSON(w, status, readiness{Ready: len(reasons) == 0, Missing: reasons})
}

// maxScrapes is how many scrapes of the metrics may be in flight. Further ones are rejected with 503.
const maxScrapes = 4

func (s *Server) scrape() handler {
	metrics := promhttp.HandlerFor(s.deps.Gatherer, promhttp.HandlerOpts{})
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "no-store")
		metrics.ServeHTTP(w, r)
		return nil
	}
}
