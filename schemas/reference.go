package schemas

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// A record of one schema file may be the type of a field, nullable or not, or of a list's items in another file, by its name. The registered
// schema has no references to other subjects: the definition of such a record replaces the first use of its name.

// reference matches the use of a record by its name.
var reference = regexp.MustCompile(`("(?:type|items)": |"type": \["null", )"([A-Z]\w*)"`)

// resolveReferences replaces the first use of each record of another file with its definition. It adds the names of these
// records to defined.
func resolveReferences(text string, defined map[string]bool) (resolved string, err error) {
	resolved = reference.ReplaceAllStringFunc(text, func(use string) string {
		parts := reference.FindStringSubmatch(use)
		before, name := parts[1], parts[2]
		if err != nil || defined[name] {
			return use
		}
		defined[name] = true
		var definition string
		if definition, err = readSchema(name, defined); err != nil {
			return use
		}
		return before + strings.TrimSpace(definition)
	})
	return resolved, err
}

// readSchema returns the schema of a record, without references to the records of other files, except those in defined.
func readSchema(name string, defined map[string]bool) (string, error) {
	text, err := schemaFiles.ReadFile("avsc/" + fileName(name) + ".avsc")
	if err != nil {
		return "", fmt.Errorf("schema of %s: %w", name, err)
	}
	return resolveReferences(string(text), defined)
}

// fileName returns the name of a record in snake case: EdgeWeight is edge_weight.
func fileName(record string) string {
	var file strings.Builder
	for i, r := range record {
		if unicode.IsUpper(r) && i > 0 {
			file.WriteByte('_')
		}
		file.WriteRune(unicode.ToLower(r))
	}
	return file.String()
}

// embedFacets returns a schema with the fields of Facets in place of each field of that type. The encoded bytes are the same.
// The Go types embed Facets, and the Avro library supports only records whose fields correspond to this.
func embedFacets(text string) (string, error) {
	var schema any
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		return "", fmt.Errorf("parse schema: %w", err)
	}
	facets, err := schemaFiles.ReadFile("avsc/facets.avsc")
	if err != nil {
		return "", err
	}
	var record struct{ Fields []any }
	if err := json.Unmarshal(facets, &record); err != nil {
		return "", fmt.Errorf("parse schema of Facets: %w", err)
	}
	embedded, err := json.Marshal(replaceField(schema, "facets", record.Fields))
	return string(embedded), err
}

// replaceField replaces each field of a name with other fields.
func replaceField(schema any, name string, fields []any) any {
	switch schema := schema.(type) {
	case map[string]any:
		for key, value := range schema {
			schema[key] = replaceField(value, name, fields)
		}
	case []any:
		list := []any{}
		for _, item := range schema {
			if field, ok := item.(map[string]any); ok && field["name"] == name {
				list = append(list, fields...)
			} else {
				list = append(list, replaceField(item, name, fields))
			}
		}
		return list
	}
	return schema
}
