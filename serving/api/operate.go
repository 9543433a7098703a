package api

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var openAPI []byte

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(openAPI) // an error means that the caller has gone
	return nil
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.deps.Status(r.Context()))
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
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
