package api

import (
	_ "embed"
	"net/http"
)

// openAPIDocument is the OpenAPI document that the server publishes.
//
//go:embed openapi.json
var openAPIDocument []byte

func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "max-age=300")
	write(w, http.StatusOK, "application/json", openAPIDocument)
	return nil
}
