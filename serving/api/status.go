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

// liveness is the answer of /healthz.
type liveness struct {
	Status string `json:"status"`
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, liveness{"alive"})
}

// NotReadyReason is a reason why a process is not ready.
type NotReadyReason struct {
	Component string `json:"component"`         // kafka, a component as in /v1/status, a group, a global table, or a store
	State     string `json:"state"`             // idle, waiting, ended or failed (components); joining, recovering, reading or unreachable (others)
	Percent   *int   `json:"percent,omitempty"` // share of the rows that have been recovered; nil: unknown
	Text      string `json:"-"`                 // the same for people
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready      bool                         `json:"ready"`
	Missing    []string                     `json:"missing"`    // for people
	Components schemas.List[NotReadyReason] `json:"components"` // for programs
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) error {
	reasons := s.deps.Ready()
	status := http.StatusOK
	if len(reasons) > 0 {
		w.Header().Set("Retry-After", "1")
		status = http.StatusServiceUnavailable
	}
	missing := forms(reasons, func(l NotReadyReason) string { return l.Text })
	return writeJSON(w, status, readiness{Ready: len(reasons) == 0, Missing: missing, Components: reasons})
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
