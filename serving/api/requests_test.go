package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// operation returns the documented operation of an exchange, or nil.
func operation(doc object, a exchange) object {
	return at(doc, "paths", a.route, strings.ToLower(a.method))
}

// parametersIn returns the documented parameters of a call in the path or the query, by name.
func parametersIn(t *testing.T, doc, op object, in string) map[string]object {
	t.Helper()
	all := map[string]object{}
	list, _ := op["parameters"].([]any)
	for _, p := range list {
		p := must.Get(resolve(doc, p.(object)))(t)
		if p["in"] == in {
			all[p["name"].(string)] = p
		}
	}
	return all
}

// inPath returns the values of a path's wildcards.
func inPath(t *testing.T, a exchange) map[string]string {
	t.Helper()
	values := map[string]string{}
	path, _, _ := strings.Cut(a.path, "?")
	sent := strings.Split(path, "/")
	for i, segment := range strings.Split(a.route, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			value := must.Get(url.PathUnescape(sent[i]))(t)
			values[strings.TrimSuffix(name, "}")] = value
		}
	}
	return values
}

// queryOf returns the parameters of a path's query, each given once.
func queryOf(t *testing.T, a exchange) map[string]string {
	t.Helper()
	_, text, _ := strings.Cut(a.path, "?")
	query := must.Get(url.ParseQuery(text))(t)
	values := map[string]string{}
	for name := range query {
		values[name] = query.Get(name)
	}
	return values
}

// conformsText checks a text in a path or query against its schema.
func conformsText(doc, schema object, text string) error {
	schema, err := resolve(doc, schema)
	if err != nil {
		return err
	}
	if schema["type"] != "integer" {
		return check(doc, schema, text)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	return check(doc, schema, n)
}

// conformsAll checks values against the documented parameters, and that the required ones are present.
func conformsAll(doc object, documented map[string]object, values map[string]string) error {
	for name, p := range documented {
		if _, given := values[name]; !given && p["required"] == true {
			return fmt.Errorf("%s is required and missing", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if documented[name] == nil {
			return fmt.Errorf("%s is not documented", name)
		}
		if err := conformsText(doc, at(documented[name], "schema"), values[name]); err != nil {
			return fmt.Errorf("%s %q: %w", name, values[name], err)
		}
	}
	return nil
}

// conformsBody checks the body of a request. It may be absent only if the document has none.
func conformsBody(doc, op object, body string) error {
	content := at(op, "requestBody", "content")
	switch {
	case content == nil && body == "":
		return nil
	case content == nil:
		return fmt.Errorf("the request has a body, and the document has none")
	case content["application/json"] != nil:
		return conforms(doc, at(content, "application/json", "schema"), []byte(body))
	}
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := conforms(doc, at(doc, "components", "schemas", "Event"), []byte(line)); err != nil {
			return err
		}
	}
	return nil
}

// keysOf returns the keys of a JSON object, and nothing for any other text.
func keysOf(body string) []string {
	var o object
	if json.Unmarshal([]byte(body), &o) != nil {
		return nil
	}
	return slices.Collect(maps.Keys(o))
}

// propertiesOf returns the keys that an object of a schema can have.
func propertiesOf(t *testing.T, doc, schema object) []string {
	t.Helper()
	schema = must.Get(resolve(doc, schema))(t)
	return slices.Collect(maps.Keys(at(schema, "properties")))
}

// The server accepts the documented requests, and the tests send everything that is documented: every query parameter, and
// every key of a body.
func TestDocument_MatchesRequests(t *testing.T) {
	doc := document(t)
	taken := map[string]bool{} // by call and name
	for _, a := range plainExchanges {
		op := operation(doc, a)
		if op == nil || a.code >= 300 {
			continue
		}
		query := queryOf(t, a)
		for problem, err := range map[string]error{
			"path":  conformsAll(doc, parametersIn(t, doc, op, "path"), inPath(t, a)),
			"query": conformsAll(doc, parametersIn(t, doc, op, "query"), query),
			"body":  conformsBody(doc, op, a.body),
		} {
			expect.Error(t, err, "", "%s %s, %s: %s", a.method, a.route, a.name, problem)
		}
		for _, name := range slices.Concat(slices.Collect(maps.Keys(query)), keysOf(a.body)) {
			taken[a.method+" "+a.route+" "+name] = true
		}
	}
	eachOperation(t, doc, func(method, path string, op object) {
		keys := propertiesOf(t, doc, at(op, "requestBody", "content", "application/json", "schema"))
		for _, name := range slices.Concat(slices.Collect(maps.Keys(parametersIn(t, doc, op, "query"))), keys) {
			expect.True(t, taken[method+" "+path+" "+name], "%s %s: %s is documented, and a successful request has it", method, path, name)
		}
	})
}

// beyond returns values that a schema rejects, by the reason.
func beyond(t *testing.T, doc, p object) map[string]string {
	t.Helper()
	schema := must.Get(resolve(doc, at(p, "schema")))(t)
	all := map[string]string{}
	if anyName := schema["minLength"] != nil && schema["pattern"] == nil; !anyName {
		all["unknown value"] = "unknown value"
	}
	if low, ok := schema["minimum"].(float64); ok {
		all["below the minimum"] = fmt.Sprint(low - 1)
	}
	if high, ok := schema["maximum"].(float64); ok {
		all["above the maximum"] = fmt.Sprint(high + 1)
	}
	if schema["type"] == "integer" {
		all["not an integer"] = "1.5"
	}
	if high, ok := schema["maxLength"].(float64); ok {
		kind, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprint(schema["pattern"]), "^"), ".")
		all["too long"] = kind + strings.Repeat("x", int(high)+1)
	}
	if schema["minLength"] != nil {
		all["too short"] = ""
	}
	return all
}

// The server rejects query values that the document does not allow, and requests without a required parameter.
func TestQuery_RejectsUndocumentedValues(t *testing.T) {
	doc := document(t)
	tried := map[string]bool{}
	for _, a := range plainExchanges {
		op, call := operation(doc, a), a.method+" "+a.route
		if op == nil || a.code >= 300 || tried[call] {
			continue
		}
		tried[call] = true
		path, _, _ := strings.Cut(a.path, "?")
		try := func(name string, wrong string, given bool) {
			query := url.Values{}
			for other, value := range queryOf(t, a) {
				query.Set(other, value)
			}
			if query.Del(name); given {
				query.Set(name, wrong)
			}
			altered := a
			altered.path = path + "?" + query.Encode()
			res, body := answered(t, altered)
			expect.Equal(t, res.StatusCode, 400, "%s: %.200s", altered.path, body)
		}
		for name, p := range parametersIn(t, doc, op, "query") {
			for what, value := range beyond(t, doc, p) {
				if conformsText(doc, at(p, "schema"), value) == nil && what != "unknown value" {
					t.Errorf("%s, %s: %q is %s, and the document accepts it", call, name, value, what)
				}
				try(name, value, true)
			}
			if p["required"] == true {
				try(name, "", false)
			}
		}
	}
	expect.AtLeast(t, len(tried), 30, "tried calls")
}
