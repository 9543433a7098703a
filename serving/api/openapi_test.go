package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
)

// object is a JSON object of the OpenAPI document.
type object = map[string]any

// document returns the document that the server publishes.
func document(t *testing.T) object {
	t.Helper()
	var doc object
	must.OK(t, json.Unmarshal(openAPIDocument, &doc))
	return doc
}

// at returns the value at a path of names, or nil if it is missing.
func at(o object, names ...string) object {
	for _, n := range names {
		o, _ = o[n].(object)
	}
	return o
}

// resolve follows a $ref inside the document.
func resolve(doc object, o object) (object, error) {
	ref, ok := o["$ref"].(string)
	if !ok {
		return o, nil
	}
	to := at(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	if to == nil {
		return nil, fmt.Errorf("%s is unresolved", ref)
	}
	return to, nil
}

// eachOperation calls f with every operation of the document.
func eachOperation(t *testing.T, doc object, f func(method, path string, op object)) {
	t.Helper()
	for path := range at(doc, "paths") {
		for method := range at(doc, "paths", path) {
			f(strings.ToUpper(method), path, at(doc, "paths", path, method))
		}
	}
}

// walk calls f with every object below v.
func walk(v any, f func(object)) {
	switch v := v.(type) {
	case object:
		f(v)
		for _, inner := range v {
			walk(inner, f)
		}
	case []any:
		for _, inner := range v {
			walk(inner, f)
		}
	}
}

// The clients in the folder clients are generated from a copy of the document.
func TestDocument_EqualsCopyOfClients(t *testing.T) {
	const file = "../../clients/openapi.json"
	if os.Getenv("UPDATE") != "" {
		must.OK(t, os.WriteFile(file, openAPIDocument, 0o644))
	}
	got := must.Get(os.ReadFile(file))(t)
	if !bytes.Equal(got, openAPIDocument) {
		t.Errorf("%s is not up to date: run `UPDATE=1 go test -run CopyOfClients ./serving/api` and `make clients`", file)
	}
}

func TestDocument_ListsExactlyTheRoutes(t *testing.T) {
	var routes, documented []string
	for _, r := range listen(t, &fakes{}, nil).routes() {
		routes = append(routes, r.method+" "+r.path)
	}
	ids := map[any]string{}
	eachOperation(t, document(t), func(method, path string, op object) {
		documented = append(documented, method+" "+path)
		if other, twice := ids[op["operationId"]]; twice || op["operationId"] == nil {
			t.Errorf("%s %s: operationId %v is that of %s, too", method, path, op["operationId"], other)
		}
		ids[op["operationId"]] = method + " " + path
	})
	slices.Sort(routes)
	slices.Sort(documented)
	expect.NoDiff(t, routes, documented, "documented routes")
}

func TestDocument_ListsScopeOfEveryStream(t *testing.T) {
	var got []string
	for _, one := range at(document(t), "paths", "/v1/events", "post")["security"].([]any) {
		scope, _ := one.(object)["service"].([]any)
		if text := scope[0].(string); strings.Count(text, ":") == 1 {
			got = append(got, text)
		}
	}
	var want []string
	for _, stream := range schemas.InputStreams() {
		want = append(want, auth.EventsOf(stream))
	}
	expect.NoDiff(t, got, want, "scopes")
}

func TestDocument_ReferencesResolve(t *testing.T) {
	doc := document(t)
	used := map[string]bool{}
	walk(doc, func(o object) {
		if ref, ok := o["$ref"].(string); ok {
			used[ref] = true
		}
		expect.Error(t, expect.ErrorOf(resolve(doc, o)), "", "resolve")
	})
	for kind := range at(doc, "components") {
		if kind == "securitySchemes" { // calls name them without $ref
			continue
		}
		for name := range at(doc, "components", kind) {
			expect.True(t, used["#/components/"+kind+"/"+name], "%s of the %s is used", name, kind)
		}
	}
}

// The answers to all requests in this package's tables have documented statuses, types and forms, and every documented
// status occurs.
func TestDocument_MatchesAnswers(t *testing.T) {
	doc := document(t)
	seen := map[string]bool{} // by call and status
	for _, a := range exchanges {
		if a.route == "" {
			continue
		}
		res, body := answered(t, a)
		call := a.method + " " + a.route
		seen[call+" "+strconv.Itoa(res.StatusCode)] = true
		expect.Error(t, documented(doc, a, res, body), "", "%s, %s", call, a.name)
	}
	eachOperation(t, doc, func(method, path string, op object) {
		call := method + " " + path
		for code := range at(op, "responses") {
			expect.True(t, seen[call+" "+code], "%s: a %s is documented, and answered", call, code)
		}
	})
}

// documented compares an answer with the document.
func documented(doc object, a exchange, res *http.Response, body []byte) error {
	answer := at(doc, "paths", a.route, strings.ToLower(a.method), "responses", strconv.Itoa(res.StatusCode))
	if answer == nil {
		return fmt.Errorf("a %d is not documented", res.StatusCode)
	}
	answer, err := resolve(doc, answer)
	if err != nil {
		return err
	}
	for name := range at(answer, "headers") {
		if res.Header.Get(name) == "" {
			return fmt.Errorf("header %s is documented and missing", name)
		}
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if len(body) == 0 && answer["content"] == nil {
		return nil
	}
	content := at(answer, "content", kind)
	if content == nil {
		return fmt.Errorf("type %q is not documented", kind)
	}
	if !strings.HasSuffix(kind, "json") {
		return nil
	}
	return conforms(doc, at(content, "schema"), body)
}

func TestDocument_ExamplesConform(t *testing.T) {
	doc := document(t)
	n := 0
	walk(doc, func(o object) {
		example, ok := o["example"]
		if !ok || at(o, "schema") == nil {
			return
		}
		n++
		text := must.Get(json.Marshal(example))(t)
		expect.Error(t, conforms(doc, at(o, "schema"), text), "", "%s", text)
	})
	expect.AtLeast(t, n, 10, "examples, one for each call")
}

// For these lines, the server and the document agree on whether the event is valid.
func TestDocument_EventLinesConform(t *testing.T) {
	doc := document(t)
	event := at(doc, "components", "schemas", "Event")
	body := at(doc, "paths", "/v1/events", "post", "requestBody", "content", "application/x-ndjson")
	lines := strings.Split(strings.TrimSpace(body["example"].(string)), "\n")
	good := append(lines,
		save,
		`{"stream":"actions","id":"1","time":1,"verb":"save","object":"pin:1"}`,
		`{"stream":"actions","id":"1","time":1,"actor":null,"verb":"save","object":"pin:1"}`,
		`{"stream":"actions","id":"1","time":1,"actor":"","verb":"save","object":"pin:1"}`,
		`{"stream":"pins","id":"1","time":1,"actor":"user:a","verb":"create","object":"pin:1","board":"board:1","interests":["interest:a"],"title":"T","link":"https://a.example/","attributes":{"price":"3"},"embedding":[1,0.5]}`,
		`{"stream":"follows","id":"1","time":1,"actor":"user:a","verb":"block","object":"user:b"}`,
		`{"stream":"users","id":"1","time":1,"actor":"user:a","verb":"update","object":"user:a","interests":[],"embedding":null}`,
		`{"stream":"candidates","id":"1","time":1,"user":"user:a","source":"ads","candidates":[{"pin":"pin:1","author":"user:b","created":1,"score":0.5}]}`)
	bad := []string{
		`{"stream":"actions","id":"1","time":1,"actor":"board:1","verb":"save","object":"pin:1"}`,
		`{"stream":"pins","id":"1","time":1,"verb":"create","object":"pin:1"}`,
		`{"stream":"pins","id":"1","time":1,"actor":"","verb":"create","object":"pin:1"}`,
		`{"stream":"follows","id":"1","time":1,"verb":"follow","object":"user:b"}`,
		`{"stream":"users","id":"1","time":1,"actor":null,"verb":"update","object":"user:a"}`,
		`{"stream":"pins","id":"1","time":1,"actor":"user:a","verb":"dance","object":"pin:1"}`,
		`{"stream":"pins","id":"1","time":1,"actor":"user:a","verb":"create","object":"user:1"}`,
		`{"stream":"follows","id":"1","time":1,"actor":"user:a","verb":"follow","object":"pin:1"}`,
		`{"stream":"users","id":"","time":1,"actor":"user:a","verb":"update","object":"user:a"}`,
		`{"stream":"users","id":"1","time":1,"actor":"user:a","verb":"update","object":"user:a","age":3}`,
		`{"stream":"other","id":"1","time":1,"actor":"user:a","verb":"update","object":"user:a"}`,
		`{"stream":"candidates","id":"1","time":1,"user":"user:a","source":"","candidates":[]}`,
	}
	for _, line := range slices.Concat(good, bad) {
		parsed, server := schemas.ParseLine([]byte(line))
		if server == nil {
			server = parsed.Validate(schemas.MicrosOf(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)), schemas.DefaultVerbs())
		}
		document := conforms(doc, event, []byte(line))
		if want := slices.Contains(good, line); (server == nil) != want || (document == nil) != want {
			t.Errorf("%s\nserver: %v\ndocument: %v\nwant it valid: %v", line, server, document, want)
		}
	}
}

// conforms checks a JSON text against a schema. It supports only the part of JSON Schema that the document uses.
func conforms(doc, schema object, text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return check(doc, schema, v)
}

func check(doc, schema object, v any) error {
	schema, err := resolve(doc, schema)
	if err != nil {
		return err
	}
	if want, ok := schema["const"]; ok && v != want {
		return fmt.Errorf("got %v, want %v", v, want)
	}
	if list, ok := schema["enum"].([]any); ok && !slices.Contains(list, v) {
		return fmt.Errorf("got %v, want one of %v", v, list)
	}
	if choices, ok := schema["oneOf"].([]any); ok {
		return checkOne(doc, choices, v)
	}
	switch schema["type"] {
	case nil:
		return nil
	case "object":
		return checkObject(doc, schema, v)
	case "array":
		return checkArray(doc, schema, v)
	case "string":
		return checkString(schema, v)
	}
	return checkScalar(schema, v)
}

func checkOne(doc object, choices []any, v any) error {
	var fits int
	var problems []error
	for _, c := range choices {
		if err := check(doc, c.(object), v); err != nil {
			problems = append(problems, err)
			continue
		}
		fits++
	}
	if fits != 1 {
		return fmt.Errorf("%d of %d choices fit: %v", fits, len(choices), problems)
	}
	return nil
}

func checkObject(doc, schema object, v any) error {
	o, ok := v.(object)
	if !ok {
		return fmt.Errorf("got %T, want an object", v)
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := o[name.(string)]; !ok {
			return fmt.Errorf("%s is missing", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		of := at(schema, "properties", name)
		if of == nil {
			if schema["additionalProperties"] == false {
				return fmt.Errorf("%s is not known", name)
			}
			of = at(schema, "additionalProperties")
		}
		if err := check(doc, of, o[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func checkArray(doc, schema object, v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("got %T, want an array", v)
	}
	if err := inBounds(schema, "minItems", "maxItems", float64(len(list))); err != nil {
		return err
	}
	for i, item := range list {
		if err := check(doc, at(schema, "items"), item); err != nil {
			return fmt.Errorf("%d: %w", i, err)
		}
	}
	return nil
}

func checkString(schema object, v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("got %T, want a string", v)
	}
	if p, ok := schema["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(s) {
		return fmt.Errorf("got %q, want %s", s, p)
	}
	if schema["format"] == "date-time" {
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			return err
		}
	}
	return inBounds(schema, "minLength", "maxLength", float64(utf8.RuneCountInString(s)))
}

func checkScalar(schema object, v any) error {
	n, number := v.(float64)
	_, boolean := v.(bool)
	fits := map[any]bool{"null": v == nil, "boolean": boolean, "number": number, "integer": number && n == math.Trunc(n)}
	if !fits[schema["type"]] {
		return fmt.Errorf("got %v, want %v", v, schema["type"])
	}
	return inBounds(schema, "minimum", "maximum", n)
}

func inBounds(schema object, least, most string, got float64) error {
	if low, ok := schema[least].(float64); ok && got < low {
		return fmt.Errorf("got %v, want at least %v", got, low)
	}
	if high, ok := schema[most].(float64); ok && got > high {
		return fmt.Errorf("got %v, want at most %v", got, high)
	}
	return nil
}
