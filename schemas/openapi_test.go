package schemas

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

type jsonObject = map[string]any

// The OpenAPI document has a schema for the event of each input stream, with the fields, descriptions and defaults of its
// Avro schema.
func TestInput_EqualsOpenAPIDocument(t *testing.T) {
	var document struct {
		Components struct{ Schemas map[string]jsonObject }
	}
	text := must.Get(os.ReadFile("../serving/api/openapi.json"))(t)
	must.OK(t, json.Unmarshal(text, &document))
	var events []any
	for _, stream := range InputStreams() {
		name := recordName(NewInput(stream))
		schema := document.Components.Schemas[name]
		fields, _ := schema["properties"].(jsonObject)
		expect.NoDiff[any](t, jsonObject{"type": "string", "const": stream}, fields["stream"], "%s.stream", name)
		delete(fields, "stream")
		compareRecord(t, avroRecord(t, stream), schema)
		events = append(events, jsonObject{"$ref": "#/components/schemas/" + name})
	}
	expect.NoDiff[any](t, events, document.Components.Schemas["Event"]["oneOf"], "Event")
}

// avroRecord returns the Avro schema of a stream's event.
func avroRecord(t *testing.T, stream string) (record jsonObject) {
	t.Helper()
	text := must.Get(schemaText(NewInput(stream)))(t)
	must.OK(t, json.Unmarshal([]byte(text), &record))
	return record
}

// compareRecord compares the schema of a record in the document with the Avro schema.
func compareRecord(t *testing.T, avro, schema jsonObject) {
	t.Helper()
	properties, _ := schema["properties"].(jsonObject)
	required, _ := schema["required"].([]any)
	if schema["additionalProperties"] != false || schema["description"] != avro["doc"] {
		t.Errorf("%s: got description %q, want %q without other fields", avro["name"], schema["description"], avro["doc"])
	}
	for _, f := range avro["fields"].([]any) {
		field := f.(jsonObject)
		name, doc := field["name"].(string), field["doc"].(string)
		property, found := properties[name].(jsonObject)
		if want := strings.ToUpper(doc[:1]) + doc[1:]; !found || property["description"] != want {
			t.Errorf("%s.%s: got description %q, want %q", avro["name"], name, property["description"], want)
		}
		_, optional := field["default"]
		optional = optional || name == "actor" && avro["name"] == "ActionEvent" // actions may be anonymous in JSON only
		if slices.Contains(required, any(name)) == optional {
			t.Errorf("%s.%s: optional in Avro or by the code: %t, but not in the document", avro["name"], name, optional)
		}
		bounds := boundsInDocument(avro["name"], name)
		expect.NoDiffBut(t, cmpopts.EquateEmpty(), numbersOf(property), bounds, "%s.%s: bounds", avro["name"], name)
		if items, ok := property["items"].(jsonObject); ok && items["properties"] != nil {
			compareRecord(t, field["type"].(jsonObject)["items"].(jsonObject), items)
		}
		delete(properties, name)
	}
	expect.NoDiff(t, properties, map[string]any{}, "%s: properties that the Avro schema does not have", avro["name"])
}

// boundsInDocument returns the bounds of a field by their names in JSON Schema. A new bound needs a line here and in the document.
func boundsInDocument(record any, field string) map[string]int {
	switch field {
	case "id":
		if record == "ClientImpressions" {
			return map[string]int{"minLength": 1, "maxLength": MaxEventIDBytes - len("/99")}
		}
		return map[string]int{"minLength": 1, "maxLength": MaxEventIDBytes}
	case "visit":
		return map[string]int{"minLength": 1, "maxLength": MaxEventIDBytes}
	case "source":
		return map[string]int{"minLength": 1, "maxLength": MaxSourceBytes}
	case "object":
		if record == "FollowEvent" { // one of several kinds, so its schema is not that of a kind
			return map[string]int{"maxLength": MaxIDBytes}
		}
	case "attributes":
		return map[string]int{"maxProperties": MaxAttributes, "minLength": 1, "maxLength": MaxAttributeName, "values": MaxAttributeBytes}
	}
	lengths := map[string]int{"title": MaxTitleBytes, "link": MaxLinkBytes, "surface": MaxSurfaceBytes, "language": maxLanguageBytes}
	if most, found := lengths[field]; found {
		return map[string]int{"maxLength": most}
	}
	counts := map[string]int{
		"interests": MaxInterests, "embedding": MaxEmbedding, "candidates": MaxCandidates, "pins": MaxClientImpressions,
	}
	if most, found := counts[field]; found {
		return map[string]int{"maxItems": most}
	}
	return nil
}

// numbersOf returns the bounds in the schema of a field. Those of attributes have bounds of their names and of their values.
func numbersOf(property jsonObject) map[string]int {
	all := map[string]int{}
	choices, _ := property["oneOf"].([]any)
	values, _ := property["additionalProperties"].(jsonObject)
	names, _ := property["propertyNames"].(jsonObject)
	if len(choices) > 0 {
		property = choices[0].(jsonObject)
	}
	for _, schema := range []jsonObject{property, names} {
		for name, value := range schema {
			if n, ok := value.(float64); ok {
				all[name] = int(n)
			}
		}
	}
	if values != nil {
		all["values"] = int(values["maxLength"].(float64))
	}
	return all
}

// A field that an event does not visit would be unknown in JSON lines, and unchecked. Required are those without a default.
func TestInput_VisitsEveryFieldOfItsSchema(t *testing.T) {
	for _, stream := range InputStreams() {
		event := jsonObject{"stream": stream}
		_, missing := ParseLine(asJSON(t, event))
		for _, f := range avroRecord(t, stream)["fields"].([]any) {
			field := f.(jsonObject)
			name := field["name"].(string)
			event[name] = 1.5
			_, optional := field["default"]
			optional = optional || name == "actor" && stream == StreamActions // actions may be anonymous in JSON only
			if strings.Contains("; "+missing.Error(), "; "+name+": missing") == optional {
				t.Errorf("%s.%s: optional %t, got %v", stream, name, optional, missing)
			}
		}
		expect.Omits(t, expect.ErrorOf(ParseLine(asJSON(t, event))).Error(), "unknown field", "%s", stream)
	}
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	return must.Get(json.Marshal(v))(t)
}
