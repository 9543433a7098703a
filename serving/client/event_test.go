package client

import (
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// schema is a JSON schema in the OpenAPI document.
type schema struct {
	Ref        string `json:"$ref"`
	Type       string
	Const      string
	Items      *schema
	OneOf      []schema
	Properties map[string]schema
	Required   []string
}

// goType returns the Go type of a value. An object is a Candidate, or else a map of text.
func (s schema) goType() string {
	switch {
	case path.Base(s.Ref) == "EventTime":
		return "time.Time"
	case len(s.OneOf) > 0:
		return s.OneOf[0].goType() // or null
	case s.Type == "array" && s.Items.Type == "number":
		return "[]float32"
	case s.Type == "array":
		return "[]" + s.Items.goType()
	case s.Type == "object" && s.Properties != nil:
		return "Candidate"
	case s.Type == "object":
		return "map[string]string"
	case s.Type == "number":
		return "float64"
	}
	return "string"
}

// goStruct returns a struct with the properties of all schemas. Properties that not all of them require may be absent.
func goStruct(name, doc string, all ...schema) string {
	fields := map[string]schema{}
	for _, s := range all {
		maps.Copy(fields, s.Properties)
	}
	names := slices.Sorted(maps.Keys(fields))
	for _, first := range []string{"object", "verb", "actor", "user", "time", "id", "stream"} {
		if i := slices.Index(names, first); i >= 0 {
			names = slices.Insert(slices.Delete(names, i, i+1), 0, first)
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "// %s %s\ntype %s struct {\n", name, doc, name)
	for _, n := range names {
		var streams []string
		option := ""
		for _, s := range all {
			if _, has := s.Properties[n]; has && s.Properties["stream"].Const != "" {
				streams = append(streams, s.Properties["stream"].Const)
			}
			if !slices.Contains(s.Required, n) {
				option = ",omitempty"
			}
		}
		comment := ""
		if len(streams) > 0 && len(streams) < len(all) {
			comment = " // of " + strings.Join(streams, ", ")
		}
		title := strings.ToUpper(n[:1]) + n[1:]
		if n == "id" {
			title = "ID"
		}
		fmt.Fprintf(&out, "%s %s `json:\"%s%s\"`%s\n", title, fields[n].goType(), n, option, comment)
	}
	return out.String() + "}\n"
}

// Event is generated from the schemas of all events in the document. UPDATE=1 rewrites it.
func TestEvent_HasFieldsOfDocument(t *testing.T) {
	text, err := os.ReadFile("../../clients/openapi.json")
	must.OK(t, err)
	var doc struct {
		Components struct{ Schemas map[string]schema }
	}
	must.OK(t, json.Unmarshal(text, &doc))
	var events []schema
	for _, one := range doc.Components.Schemas["Event"].OneOf {
		events = append(events, doc.Components.Schemas[path.Base(one.Ref)])
	}
	candidates := doc.Components.Schemas["Offer"].Properties["candidates"]
	source := "// Code generated from clients/openapi.json by TestEvent_HasFieldsOfDocument. DO NOT EDIT.\n\npackage client\n\nimport \"time\"\n\n" +
		goStruct("Event", "is an event of any stream. Empty fields are absent.", events...) + "\n" +
		goStruct("Candidate", "is a pin that an external source offers to a user.", *candidates.Items)
	want, err := format.Source([]byte(source))
	must.OK(t, err)
	if os.Getenv("UPDATE") != "" {
		must.OK(t, os.WriteFile("event.go", want, 0o644))
	}
	got, err := os.ReadFile("event.go")
	must.OK(t, err)
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("event.go is not up to date: run UPDATE=1 go test ./serving/client (-file +document):\n%s", diff)
	}
}
