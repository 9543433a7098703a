package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// document is the part of the server's OpenAPI document that the tests need.
type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Parameters map[string]parameter }
}

type operation struct {
	OperationID string
	Parameters  []parameter
	Responses   map[string]struct {
		Content map[string]struct{ Example json.RawMessage }
	}
}

type parameter struct {
	Name, In string
	Ref      string `json:"$ref"`
}

func documented(t *testing.T) document {
	t.Helper()
	text, err := os.ReadFile("../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// operation returns the operation of a request, and reports whether all parameters of its query are documented.
func (d document) operation(r *http.Request) (op operation, ok bool) {
	for path, methods := range d.Paths {
		form := regexp.MustCompile(`{\w+}`).ReplaceAllString(path, "[^/]+")
		if regexp.MustCompile("^" + form + "$").MatchString(r.URL.EscapedPath()) {
			if op, ok = methods[strings.ToLower(r.Method)]; ok {
				break
			}
		}
	}
	for name := range r.URL.Query() {
		ok = ok && slices.ContainsFunc(op.Parameters, func(p parameter) bool {
			if _, of, ref := strings.Cut(p.Ref, "#/components/parameters/"); ref {
				p = d.Components.Parameters[of]
			}
			return p.In == "query" && p.Name == name
		})
	}
	return op, ok
}

// example returns the documented answer for success and its content type; "" if there is none.
func (o operation) example() (text, kind string) {
	for code, res := range o.Responses {
		for kind, content := range res.Content {
			var plain string
			switch {
			case code[0] != '2' || content.Example == nil:
			case json.Unmarshal(content.Example, &plain) == nil:
				return plain, kind
			default:
				return string(content.Example), kind
			}
		}
	}
	return "", ""
}

// Every call is in the document, and the values that the call returns contain the whole documented answer under the same
// names.
func TestClient_ReadsDocumentedAnswers(t *testing.T) {
	doc := documented(t)
	var asked, answer string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		op, ok := doc.operation(r)
		if !ok {
			t.Errorf("%s %s is not documented", r.Method, r.RequestURI)
			return
		}
		var kind string
		asked = op.OperationID
		if answer, kind = op.example(); answer == "" {
			t.Errorf("%s has no example", asked)
		}
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	c := connected(t, Config{Address: server.URL})
	ctx := context.Background()
	for want, call := range map[string]func() (any, error){
		"feed":             func() (any, error) { return c.Visit(ctx, "user:a", VisitOptions{"plain", 3}) },
		"waiting":          func() (any, error) { n, err := c.Waiting(ctx, "user:a"); return count{n}, err },
		"why":              func() (any, error) { return c.Why(ctx, "user:a", "plain", "pin:1") },
		"pool":             func() (any, error) { return c.Pool(ctx, "user:a", "interest", 3) },
		"userPins":         func() (any, error) { return c.Published(ctx, "user:a", "x", 3) },
		"boardPins":        func() (any, error) { return c.Published(ctx, "board:a", "x", 3) },
		"interestPins":     func() (any, error) { return c.Published(ctx, "interest:a", "x", 3) },
		"relatedPins":      func() (any, error) { return c.RelatedPins(ctx, "pin:1", 3) },
		"relatedInterests": func() (any, error) { return c.RelatedInterests(ctx, "interest:a", 3) },
		"engagement": func() (any, error) {
			sources, err := c.Engagement(ctx, "interest:a", 3)
			return map[string]any{"sources": sources}, err
		},
		"definitions": func() (any, error) {
			defs, err := c.Definitions(ctx)
			return map[string]any{"features": defs}, err
		},
		"features":   func() (any, error) { return c.Features(ctx, FeaturesRequest{}) },
		"attributes": func() (any, error) { return c.Attributes(ctx, AttributesRequest{}) },
		"events": func() (any, error) {
			n, err := c.Publish(ctx, strings.NewReader("{}"))
			return map[string]int{"accepted": n}, err
		},
	} {
		got, err := call()
		if err != nil || asked != want {
			t.Errorf("%s: got %v, having asked for %s", want, err, asked)
			continue
		}
		if diff := cmp.Diff(plain(t, []byte(answer)), plain(t, got)); diff != "" {
			t.Errorf("%s (-document +read):\n%s", want, diff)
		}
	}
	if _, err := c.Older(ctx, "user:a", "x", 3); err != nil || asked != "feed" {
		t.Errorf("older: got %v, having asked for %s", err, asked)
	}
	if got, err := listened(ctx, c); !slices.Equal(got, []int{7}) || asked != "waitingStream" {
		t.Errorf("stream: got %v, %v, having asked for %s", got, err, asked)
	}
}

// plain returns a value, or a JSON text, in the generic form of encoding/json.
func plain(t *testing.T, v any) (all any) {
	t.Helper()
	text, ok := v.([]byte)
	if !ok {
		var err error
		if text, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return all
}
