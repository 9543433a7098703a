package api

import (
	_ "embed"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed openapi.json
var openAPI []byte

func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	writeTagged(w, r, "max-age=300", openAPI)
	return nil
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.deps.Status(r.Context()))
}

// liveness is the answer of /healthz.
type liveness struct {
	Status string `json:"status"`
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, liveness{"alive"})
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready   bool     `json:"ready"`
	Missing []string `json:"missing"`
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) error {
	missing := s.deps.Ready()
	if len(missing) > 0 {
		w.Header().Set("Retry-After", "1")
		return writeJSON(w, http.StatusServiceUnavailable, readiness{Missing: missing})
	}
	return writeJSON(w, http.StatusOK, readiness{Ready: true, Missing: []string{}})
}

// maxScrapes is how many scrapes of the metrics are under way at once; more are refused with 503.
const maxScrapes = 4

func (s *Server) scrape() handler {
	metrics := promhttp.HandlerFor(s.deps.Gatherer, promhttp.HandlerOpts{})
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "no-store")
		metrics.ServeHTTP(w, r)
		return nil
	}
}
