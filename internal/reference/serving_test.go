package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// parse reads a file of the repository as YAML or JSON.
func parse(t *testing.T, file string, into any) {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(root, file)))(t)
	if strings.HasSuffix(file, ".json") {
		must.OK(t, json.Unmarshal(text, into))
		return
	}
	must.OK(t, yaml.Unmarshal(text, into))
}

// api is the OpenAPI document.
type api struct {
	Info  struct{ Description string }
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]struct {
		Summary, Description string
		Tags                 []string
		Security             []map[string][]string
		Parameters           []object
		RequestBody          object
		Responses            map[string]object
	}
	Components map[string]map[string]object
}

// follow returns the component that an object refers to, or the object.
func (a api) follow(o object) object {
	ref, _ := o["$ref"].(string)
	if parts := strings.Split(ref, "/"); len(parts) == 4 {
		return a.Components[parts[2]][parts[3]]
	}
	return o
}

// httpAPI has a section for each call, and one for each schema.
func httpAPI(t *testing.T, p *page) {
	var doc api
	parse(t, "serving/api/openapi.json", &doc)
	p.text("Each process that serves shows this reference at `/docs`, and the OpenAPI document at `/v1/openapi.json`. [Authentication](../how-to/authentication.md) explains tokens and scopes.")
	p.text("%s", plain(doc.Info.Description))
	p.text("## Errors\n\nEach call lists the statuses of its errors.")
	errors := map[string]string{} // by status
	for _, path := range doc.Paths {
		for _, op := range path {
			for status, r := range op.Responses {
				if r["$ref"] != nil {
					errors[status] = sentence(docOf(doc.follow(r)))
				}
			}
		}
	}
	var rows [][]string
	for _, status := range slices.Sorted(maps.Keys(errors)) {
		rows = append(rows, []string{status, errors[status], contentOf(doc.follow(object{"$ref": "#/components/responses/BadRequest"}))})
	}
	p.table([]string{"Status", "Meaning", "Answer"}, rows)
	for _, tag := range doc.Tags {
		p.text("## %s\n\n%s", strings.ToUpper(tag.Name[:1])+tag.Name[1:], tag.Description)
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
				op := doc.Paths[path][method]
				if !slices.Contains(op.Tags, tag.Name) {
					continue
				}
				p.text("### %s %s", strings.ToUpper(method), path)
				p.text("%s", strings.TrimSpace(sentence(op.Summary)+" "+plain(op.Description)))
				p.text("Token: %s.", accessOf(op.Security))
				rows = nil
				for _, o := range op.Parameters {
					o = doc.follow(o)
					schema := o["schema"].(object)
					required := map[bool]string{true: "yes"}[o["required"] == true]
					rows = append(rows, []string{code(o["name"].(string)), sentence(docOf(o)), fmt.Sprint(o["in"]), required, typeOf(schema), boundOf(schema)})
				}
				p.table([]string{"Parameter", "Description", "In", "Required", "Type", "Bounds"}, rows)
				if op.RequestBody != nil {
					p.text("Body: %s", contentOf(op.RequestBody))
				}
				rows = nil
				var common []string
				for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
					if r := op.Responses[status]; r["$ref"] != nil {
						common = append(common, status)
					} else {
						rows = append(rows, []string{status, sentence(docOf(r)), contentOf(r)})
					}
				}
				p.table([]string{"Status", "Meaning", "Answer"}, rows)
				if len(common) > 0 {
					p.text("[Errors](#errors): %s.", strings.Join(common, ", "))
				}
			}
		}
	}
	p.text("## Schemas")
	for _, name := range slices.Sorted(maps.Keys(doc.Components["schemas"])) {
		schema := doc.Components["schemas"][name]
		if strings.Contains(fmt.Sprint(doc.Components["schemas"]["Event"]), "/"+name+"]") {
			continue // described as the record of its topic
		}
		if name == "Event" {
			schema = object{"description": "An event of an input stream: see [Input topics](events-and-topics.md#input-topics)."}
		}
		p.text("### %s", name)
		p.text("%s", strings.TrimSpace(sentence(docOf(schema))+" "+boundOf(schema)))
		properties, _ := schema["properties"].(object)
		required := fmt.Sprint(schema["required"])
		rows = nil
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			of := properties[key].(object)
			needed := map[bool]string{true: "yes"}[regexp.MustCompile(`[\[ ]`+key+`[\] ]`).MatchString(required)]
			rows = append(rows, []string{code(key), sentence(docOf(of)), typeOf(of), needed, boundOf(of)})
		}
		p.table([]string{"Key", "Description", "Type", "Required", "Bounds"}, rows)
	}
}

func docOf(o object) string {
	doc, _ := o["description"].(string)
	return doc
}

// accessOf describes the permissions for a call.
func accessOf(security []map[string][]string) string {
	if len(security) == 0 {
		return "none"
	}
	var all []string
	for _, one := range security {
		for scheme, scopes := range one {
			all = append(all, map[string]string{
				"self": "of the user in the path", "user": "of any user", "scrape": "the static token in `metrics.token_file`",
				"service": "of a service with the scope " + codes(scopes),
			}[scheme])
		}
	}
	return strings.Join(all, ", or ")
}

// contentOf describes the contents of a body or an answer.
func contentOf(o object) string {
	content, _ := o["content"].(object)
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		media := content[kind].(object)
		text := code(kind) + ": "
		if lines, ok := media["x-line-schema"].(object); ok {
			text += "one " + typeOf(lines) + " per line"
		} else {
			schema, _ := media["schema"].(object)
			text += typeOf(schema)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// typeOf describes the type of a schema, with links to the named ones.
func typeOf(s object) string {
	if ref, _ := s["$ref"].(string); ref != "" {
		name := filepath.Base(ref)
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	if choices, _ := s["oneOf"].([]any); len(choices) > 0 {
		return strings.Join(convert.All(choices, func(c any) string { return typeOf(c.(object)) }), " or ")
	}
	if items, ok := s["items"].(object); ok {
		return "array of " + typeOf(items)
	}
	if properties, ok := s["properties"].(object); ok {
		return "object with " + codes(slices.Sorted(maps.Keys(properties)))
	}
	if values, ok := s["additionalProperties"].(object); ok {
		return "map of " + typeOf(values)
	}
	if constant, ok := s["const"]; ok {
		return code(fmt.Sprint(constant))
	}
	if kind, ok := s["type"].(string); ok {
		return kind
	}
	return "any value"
}

// metricsAndAlerts describes what Prometheus gets and what it reports.
func metricsAndAlerts(t *testing.T, p *page) {
	text := must.Get(os.ReadFile(root + "app/testdata/metrics.golden"))(t)
	p.text("## Metrics\n\n`GET /metrics` returns these metrics and those of the Go runtime and the process. A process has only the metrics of its components.")
	var rows [][]string
	for _, m := range regexp.MustCompile(`(?m)^(\w+)\{(.*?)\} (\w+) (.*)$`).FindAllStringSubmatch(string(text), -1) {
		var labels []string
		if m[2] != "" {
			labels = strings.Split(m[2], ",")
		}
		rows = append(rows, []string{code(m[1]), m[3], codes(labels), plain(m[4])})
	}
	must.Equal(t, len(rows), strings.Count(string(text), "\n"), "metrics, one per line")
	p.table([]string{"Metric", "Type", "Labels", "Description"}, rows)
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	parse(t, "deploy/monitoring/alerts.yml", &file)
	p.text("## Alerts\n\n`deploy/monitoring/alerts.yml` defines these alerts. An alert fires when its expression has had a value for the given time.")
	const runbooks = "docs/operations/runbooks.md"
	steps, _ := os.ReadFile(root + runbooks) // missing: no links
	for _, group := range file.Groups {
		for _, a := range group.Rules {
			p.text("### %s", a.Alert)
			summary := regexp.MustCompile(`\{\{ *\$labels\.(\w+) *\}\}`).ReplaceAllString(a.Annotations["summary"], "($1)")
			summary = regexp.MustCompile(`\{\{[^}]*\}\}`).ReplaceAllString(summary, "(value)")
			facts := [][]string{{"Summary", sentence(summary)}, {"Severity", a.Labels["severity"]}, {"For", a.For}}
			if regexp.MustCompile(`(?m)^#+ ` + a.Alert + `$`).Match(steps) {
				facts = append(facts, []string{"Runbook", "[" + a.Alert + "](../operations/runbooks.md#" + strings.ToLower(a.Alert) + ")"})
			}
			p.table([]string{"Property", "Value"}, slices.DeleteFunc(facts, func(f []string) bool { return f[1] == "" }))
			p.block("promql", a.Expr)
		}
	}
}
