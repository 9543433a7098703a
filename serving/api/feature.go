package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/smartfeed/smartfeed/serving/feature"
)

func (s *Server) definitions(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string][]feature.Definition{"features": s.deps.Features.Definitions()})
}

func (s *Server) features(w http.ResponseWriter, r *http.Request) error {
	if err := errors.Join(parametersOf(r).err(), contentType(r, "application/json")); err != nil {
		return err
	}
	var req feature.Request
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, s.cfg.MaxFeatureBytes))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		return badJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return problem(http.StatusBadRequest, "something follows the JSON object")
	}
	answer, err := s.deps.Features.Answer(r.Context(), req)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, answer)
}

func badJSON(err error) error {
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return err
	}
	return problem(http.StatusBadRequest, "the body is not the JSON object that is wanted: %v", err)
}
