package schemas

import (
	"encoding/json"
	"fmt"
	"strings"
)

// JSONSchemas returns the JSON Schema of each input event's JSON form, by the name of its record, for an OpenAPI document
// that defines the schemas UserID, PinID, BoardID, InterestID and EventTime. The schema Event is that of any of them. Descriptions
// are those of the Avro schemas.
func JSONSchemas() (map[string]any, error) {
	schemas := map[string]any{}
	var refs []any
	for _, s := range inputStreams() {
		event := s.make()
		docs, err := docsOf(event)
		if err != nil {
			return nil, err
		}
		record := recordName(event)
		schema := newJSONSchema(record, docs)
		schema.add("stream", required, map[string]string{"type": "string", "const": s.name})
		event.visit(schema)
		schemas[record] = schema.asObject()
		refs = append(refs, ref(record))
	}
	schemas["Event"] = map[string]any{"description": "One line.", "oneOf": refs}
	return schemas, nil
}

// docsOf returns the docs in the Avro schema of a record, by the name of a record or of "record.field".
func docsOf(rec any) (map[string]string, error) {
	text, err := schemaText(rec)
	if err != nil {
		return nil, err
	}
	var parsed any
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		return nil, fmt.Errorf("docs of %T: %w", rec, err)
	}
	docs := map[string]string{}
	collectDocs(docs, "", parsed)
	return docs, nil
}

// collectDocs adds the docs of a type, which belongs to a field of a record.
func collectDocs(docs map[string]string, record string, node any) {
	switch node := node.(type) {
	case []any:
		for _, n := range node {
			collectDocs(docs, record, n)
		}
	case map[string]any:
		name, _ := node["name"].(string)
		if node["type"] != "record" && name != "" {
			name = record + "." + name
		}
		if doc, ok := node["doc"].(string); ok {
			docs[name] = strings.ToUpper(doc[:1]) + doc[1:]
		}
		if node["type"] == "record" {
			record = name
		}
		for _, key := range []string{"fields", "type", "items"} {
			collectDocs(docs, record, node[key])
		}
	}
}

// jsonSchema is the fieldVisitor that documents an event. The values that it visits do not matter.
type jsonSchema struct {
	record     string
	docs       map[string]string
	properties map[string]any
	required   []string
}

func newJSONSchema(record string, docs map[string]string) *jsonSchema {
	return &jsonSchema{record: record, docs: docs, properties: map[string]any{}, required: []string{}}
}

func (s *jsonSchema) asObject() map[string]any {
	o := map[string]any{"type": "object", "properties": s.properties, "required": s.required, "additionalProperties": false}
	if doc := s.docs[s.record]; doc != "" {
		o["description"] = doc
	}
	return o
}

// add adds a field.
func (s *jsonSchema) add(name string, r rule, schema any) {
	if r == required || r == expected {
		s.required = append(s.required, name)
	}
	doc := s.docs[s.record+"."+name]
	if o, ok := schema.(map[string]any); ok && doc != "" {
		o["description"] = doc
	}
	s.properties[name] = schema
}

func ref(name string) map[string]any { return map[string]any{"$ref": "#/components/schemas/" + name} }

// idSchema returns the schema of a typed id.
func idSchema(kinds string) map[string]any {
	if strings.Contains(kinds, "|") {
		return map[string]any{"type": "string", "pattern": "^(" + kinds + "):.", "maxLength": MaxIDBytes}
	}
	return ref(strings.ToUpper(kinds[:1]) + kinds[1:] + "ID")
}

func (s *jsonSchema) text(name string, _ *string, b textBounds) {
	schema := map[string]any{"type": "string"}
	switch {
	case b.kinds != "":
		schema = idSchema(b.kinds)
	case b.values != "":
		schema["enum"] = strings.Split(b.values, "|")
	case b.maxBytes > 0:
		schema["maxLength"] = b.maxBytes
	}
	if b.rule == required && b.maxBytes > 0 {
		schema["minLength"] = 1
	}
	if b.reserved != "" {
		schema["not"] = map[string]any{"enum": strings.Split(b.reserved, "|")}
	}
	if b.rule == nullable {
		empty := map[string]any{"type": "string", "const": ""}
		schema = map[string]any{"oneOf": []any{schema, empty, map[string]any{"type": "null"}}}
	}
	s.add(name, b.rule, schema)
}

func (s *jsonSchema) time(name string, _ *Micros) {
	s.add(name, required, ref("EventTime"))
}

func (s *jsonSchema) number(name string, _ *float64) {
	s.add(name, required, map[string]any{"type": "number"})
}

func (s *jsonSchema) ids(name string, _ idList, b idBounds) {
	s.add(name, b.rule, map[string]any{"type": "array", "items": idSchema(b.kind), "maxItems": b.most})
}

func (s *jsonSchema) attributes(name string, _ *map[string]string) {
	s.add(name, optional, map[string]any{
		"type": "object", "additionalProperties": map[string]any{"type": "string", "maxLength": MaxAttributeBytes},
		"propertyNames": map[string]any{"minLength": 1, "maxLength": MaxAttributeName}, "maxProperties": MaxAttributes,
	})
}

func (s *jsonSchema) embedding(name string, _ *[]float32) {
	list := map[string]any{"type": "array", "items": map[string]any{"type": "number"}, "maxItems": MaxEmbedding}
	s.add(name, nullable, map[string]any{"oneOf": []any{list, map[string]any{"type": "null"}}})
}

func (s *jsonSchema) candidates(name string, _ *[]Candidate) {
	inner := newJSONSchema("Candidate", s.docs)
	new(Candidate).visit(inner)
	s.add(name, required, map[string]any{"type": "array", "items": inner.asObject(), "maxItems": MaxCandidates})
}
