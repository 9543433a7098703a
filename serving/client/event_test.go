package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// schema is a JSON schema in the OpenAPI document.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 string
	Format               string
	Description          string
	Const                string
	MaxItems             int
	Items                *schema
	AdditionalProperties json.RawMessage
	OneOf                []schema
	Properties           map[string]schema
	Required             []string
}

// schemas are the schemas of the document by name.
type schemas map[string]schema

// goType returns the Go type of a value. where names an object inside a schema, such as FeaturesAnswer.missing.
func (all schemas) goType(s schema, where string) string {
	name := path.Base(s.Ref)
	switch {
	case s.Ref != "" && name == "EventTime", s.Format == "date-time":
		return "time.Time"
	case s.Ref != "" && all[name].Properties != nil:
		return goNames[name]
	case s.Ref != "" && name == "Value", len(s.OneOf) > 0 && !s.nullable():
		return "json.RawMessage"
	case s.Ref != "":
		return all.goType(all[name], where)
	case s.nullable():
		return "*" + all.goType(s.other(), where)
	case s.Type == "array" && s.MaxItems == 2 && s.Items.Type == "string":
		return "[2]string"
	case s.Type == "array" && s.Items.Type == "number":
		return "[]float32"
	case s.Type == "array":
		return "[]" + all.goType(*s.Items, where)
	case s.Properties != nil:
		return goNames[where]
	case s.Type == "object":
		var values schema
		if json.Unmarshal(s.AdditionalProperties, &values) != nil || values.Type+values.Ref == "" {
			values.Type = "string"
		}
		return "map[string]" + all.goType(values, where)
	}
	return map[string]string{"number": "float64", "integer": "int", "boolean": "bool", "string": "string"}[s.Type]
}

func (s schema) nullable() bool {
	return slices.ContainsFunc(s.OneOf, func(one schema) bool { return one.Type == "null" })
}

// other returns the alternative to null.
func (s schema) other() schema {
	return s.OneOf[slices.IndexFunc(s.OneOf, func(one schema) bool { return one.Type != "null" })]
}

// inline returns the schema of an object inside a schema.
func (all schemas) inline(where string) schema {
	of, property, found := strings.Cut(where, ".")
	s := all[of]
	if !found {
		return s
	}
	if s = s.Properties[property]; s.Items != nil {
		return *s.Items
	}
	_ = json.Unmarshal(s.AdditionalProperties, &s)
	return s
}

// goStruct returns a struct with the properties of all schemas. Properties that not all of them require may be absent. base is an
// embedded struct with some of the properties; "": none.
func (all schemas) goStruct(name, where, doc, base string, of ...schema) string {
	fields := map[string]schema{}
	for _, s := range of {
		maps.Copy(fields, s.Properties)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n// %s %s\ntype %s struct {\n", name, doc, name)
	if base != "" {
		fmt.Fprintln(&out, goNames[base])
		maps.DeleteFunc(fields, func(name string, _ schema) bool { _, inherited := all[base].Properties[name]; return inherited })
	}
	for _, n := range sortedNames(fields) {
		field, kind, option, comment := fields[n], all.goType(fields[n], where+"."+n), "", ""
		if where == "Event" { // an absent field is empty
			kind = strings.TrimPrefix(kind, "*")
		}
		if len(of) > 1 {
			comment = streamsWith(n, of)
		} else if text := cmp.Or(field.Description, describedOther(field)); text != "" {
			fmt.Fprintln(&out, "// "+strings.ReplaceAll(text, "\n", " "))
		}
		if slices.ContainsFunc(of, func(s schema) bool { return !slices.Contains(s.Required, n) }) {
			option = ",omitempty"
			if where != "Event" && (kind == "time.Time" || kind == "float64") { // the zero value differs from an absent one
				kind = "*" + kind
			}
		}
		fmt.Fprintf(&out, "%s %s `json:\"%s%s\"`%s\n", goName(where, n), kind, n, option, comment)
	}
	return out.String() + "}\n"
}

func describedOther(s schema) string {
	if !s.nullable() {
		return ""
	}
	return s.other().Description
}

// sortedNames returns the names of properties: those of the author and time of an event first.
func sortedNames(fields map[string]schema) []string {
	names := slices.Sorted(maps.Keys(fields))
	for _, first := range []string{"object", "verb", "actor", "user", "time", "id", "stream"} {
		if i := slices.Index(names, first); i >= 0 {
			names = slices.Insert(slices.Delete(names, i, i+1), 0, first)
		}
	}
	return names
}

// streamsWith returns a comment with the streams whose events have a property, if others have not.
func streamsWith(property string, of []schema) string {
	var streams []string
	for _, s := range of {
		if _, has := s.Properties[property]; has {
			streams = append(streams, s.Properties["stream"].Const)
		}
	}
	if len(streams) == len(of) {
		return ""
	}
	return " // of " + strings.Join(streams, ", ")
}

// goName returns the name of a field.
func goName(where, property string) string {
	if where == "PinItem" && property == "pin" || property == "id" {
		return "ID"
	}
	name := ""
	for word := range strings.SplitSeq(property, "_") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}

// answers are the types of requests and answers, by the schema or the object inside a schema.
var answers = []struct{ where, name, base, doc string }{
	{"FeedPage", "Page", "", "is a page of a user's feed."},
	{"FeedItem", "Item", "PinItem", "is a pin in a feed."},
	{"PinItem", "Pin", "", "is the current state of a pin."},
	{"PinPage", "ListPage", "", "is a page of publications."},
	{"Why", "Why", "", "is the state of a pin for a user, or how a visit now would handle it."},
	{"Shown", "Shown", "", "describes how a pin was shown."},
	{"WhyCandidate", "WhyCandidate", "", "is a pin in the pool of one source."},
	{"Pool", "Pool", "", "is the candidates of a user from one source: visible and unseen."},
	{"PoolItem", "PoolItem", "", "is a candidate in a pool."},
	{"RelatedPins", "RelatedPins", "", "are the pins related to a pin, strongest first."},
	{"RelatedPin", "RelatedPin", "PinItem", "is a pin that is related to another pin."},
	{"RelatedInterests", "RelatedInterests", "", "are the interests related to an interest, strongest first."},
	{"RelatedInterests.items", "RelatedInterest", "", "is an interest that is related to another interest."},
	{"SourceEngagement", "SourceEngagement", "", "is the engagement with an interest's pins from one source."},
	{"Definition", "Definition", "", "defines a feature, with the keys of features.yaml."},
	{"FeaturesRequest", "FeaturesRequest", "", "asks for features of entities: each feature for all entities of its kind."},
	{"FeaturesAnswer", "FeaturesAnswer", "", "has the values of every requested entity, by entity name and feature name."},
	{"FeaturesAnswer.missing", "Missing", "", "says that a feature of an entity, or a part of it, is not in the answer."},
	{"AttributesRequest", "AttributesRequest", "", "asks for the current attributes of pins."},
	{"AttributesAnswer", "AttributesAnswer", "", "has the attributes of the requested pins."},
	{"AttributesAnswer.pins", "Attributes", "", "is the data of a pin as of its newest version."},
	{"AttributesAnswer.missing", "MissingPin", "", "says why the answer does not have a pin."},
}

// goNames are the names of the types in Go.
var goNames = func() map[string]string {
	names := map[string]string{"Event.candidates": "Candidate"}
	for _, a := range answers {
		names[a.where] = a.name
	}
	return names
}()

// The types are generated from the schemas in the document. UPDATE=1 rewrites them.
func TestEvent_HasFieldsOfDocument(t *testing.T) {
	text := must.Get(os.ReadFile("../../clients/openapi.json"))(t)
	var doc struct{ Components struct{ Schemas schemas } }
	must.OK(t, json.Unmarshal(text, &doc))
	all := doc.Components.Schemas
	var events []schema
	for _, one := range all["Event"].OneOf {
		events = append(events, all[path.Base(one.Ref)])
	}
	checkGenerated(t, "event.go", `import "time"`, all.goStruct("Event", "Event", "is an event of any stream. Empty fields are absent.", "", events...)+
		all.goStruct("Candidate", "Event", "is a pin that an external source offers to a user.", "", all.inline("Offer.candidates")))
	source := ""
	for _, a := range answers {
		source += all.goStruct(a.name, a.where, a.doc, a.base, all.inline(a.where))
	}
	checkGenerated(t, "answers.go", "import (\n\"encoding/json\"\n\"time\"\n)", source)
}

// checkGenerated compares a generated file with its text.
func checkGenerated(t *testing.T, file, imports, types string) {
	t.Helper()
	const head = "// Code generated from clients/openapi.json by TestEvent_HasFieldsOfDocument. DO NOT EDIT.\n\npackage client\n\n"
	want := must.Get(format.Source([]byte(head + imports + "\n" + types)))(t)
	if os.Getenv("UPDATE") != "" {
		must.OK(t, os.WriteFile(file, want, 0o644))
	}
	got := must.Get(os.ReadFile(file))(t)
	if changed := diff.Diff(string(got), string(want)); changed != "" {
		t.Errorf("%s is not up to date: run UPDATE=1 go test ./serving/client (-file +document):\n%s", file, changed)
	}
}
