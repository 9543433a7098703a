package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
)

// openAPITemplate is the OpenAPI document without the parts that follow from the registry of input streams.
//
//go:embed openapi.json
var openAPITemplate []byte

// The placeholders in openAPITemplate.
const (
	eventSchemasHere = `"Event": {}`
	streamScopesHere = `{"service": ["events:STREAM"]}`
)

// openAPIDocument returns the OpenAPI document that the server publishes. The caller must not change it.
var openAPIDocument = sync.OnceValues(func() ([]byte, error) {
	all, err := schemas.JSONSchemas()
	if err != nil {
		return nil, fmt.Errorf("write OpenAPI document: %w", err)
	}
	var events, scopes [][]byte
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text, err := json.MarshalIndent(all[name], "      ", "  ")
		if err != nil {
			return nil, fmt.Errorf("write schema of %s: %w", name, err)
		}
		events = append(events, fmt.Appendf(nil, "%q: %s", name, text))
	}
	for _, stream := range schemas.InputStreams() {
		scopes = append(scopes, fmt.Appendf(nil, `{"service": [%q]}`, auth.EventsOf(stream)))
	}
	document := bytes.Replace(openAPITemplate, []byte(eventSchemasHere), bytes.Join(events, []byte(",\n      ")), 1)
	return bytes.Replace(document, []byte(streamScopesHere), bytes.Join(scopes, []byte(", ")), 1), nil
})

func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	document, err := openAPIDocument()
	if err == nil {
		writeTagged(w, r, "max-age=300", document)
	}
	return err
}
