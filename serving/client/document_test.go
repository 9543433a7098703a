package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
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
	text := must.Get(os.ReadFile("../../clients/openapi.json"))(t)
	var d document
	must.OK(t, json.Unmarshal(text, &d))
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
			if code[0] == '2' && content.Example != nil {
				return string(content.Example), kind
			}
		}
	}
	return "", ""
}

// Every call sends the documented request, with its token, and the values that it returns contain the complete documented answer
// under the same names.
func TestClient_SendsRequestsAndReadsAnswersOfTheDocument(t *testing.T) {
	doc := documented(t)
	var operation, request, answer string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request = strings.TrimSpace(strings.Join([]string{r.Method, r.RequestURI, r.Header.Get("Content-Type"), string(body)}, " "))
		op, ok := doc.operation(r)
		if !ok || r.Header.Get("Authorization") != "Bearer t-1" {
			t.Errorf("%s is not documented, or has no token", request)
			return
		}
		var kind string
		operation = op.OperationID
		if answer, kind = op.example(); answer == "" {
			t.Errorf("%s has no example", operation)
		}
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	c := connected(t, Config{Address: server.URL, Token: "t-1"})
	ctx := context.Background()
	for _, test := range []struct {
		operation, request string
		call               func() (any, error)
	}{
		{"feed", "GET /v1/users/user:a%2Fb/feed?feed=plain&limit=3", func() (any, error) { return c.Visit(ctx, "user:a/b", VisitOptions{"plain", 3}) }},
		{"feed", "GET /v1/users/user:a/feed", func() (any, error) { return c.Visit(ctx, "user:a", VisitOptions{}) }},
		{"feed", "GET /v1/users/user:a/feed?feed=plain&limit=3&peek=true", func() (any, error) { return c.Peek(ctx, "user:a", VisitOptions{"plain", 3}) }},
		{"visit", "POST /v1/users/user:a/visits?limit=3", func() (any, error) { return c.VisitOnce(ctx, "user:a", "k", VisitOptions{"", 3}) }},
		{"waiting", "GET /v1/users/user:a/feed/new", func() (any, error) { n, err := c.Waiting(ctx, "user:a"); return count{n}, err }},
		{"why", "GET /v1/users/user:a/feed/why?pin=pin%3A1", func() (any, error) { return c.Why(ctx, "user:a", "", "pin:1") }},
		{"pool", "GET /v1/users/user:a/pools?limit=2&source=ads", func() (any, error) { return c.Pool(ctx, "user:a", "ads", 2) }},
		{"userPins", "GET /v1/users/user:a/pins", func() (any, error) { return c.Published(ctx, "user:a", "", 0) }},
		{"boardPins", "GET /v1/boards/board:b/pins?cursor=c&limit=1", func() (any, error) { return c.Published(ctx, "board:b", "c", 1) }},
		{"interestPins", "GET /v1/interests/interest:a/pins", func() (any, error) { return c.Published(ctx, "interest:a", "", 0) }},
		{"relatedPins", "GET /v1/pins/pin:1/related?limit=2", func() (any, error) { return c.RelatedPins(ctx, "pin:1", 2) }},
		{"relatedInterests", "GET /v1/interests/interest:t/related", func() (any, error) { return c.RelatedInterests(ctx, "interest:t", 0) }},
		{"engagement", "GET /v1/interests/interest:t/engagement?days=7", func() (any, error) {
			sources, err := c.Engagement(ctx, "interest:t", 7)
			return map[string]any{"sources": sources}, err
		}},
		{"definitions", "GET /v1/features", func() (any, error) {
			defs, err := c.Definitions(ctx)
			sets, errSets := c.FeatureSets(ctx)
			return map[string]any{"features": defs, "feature_sets": sets}, errors.Join(err, errSets)
		}},
		{"features", `POST /v1/features application/json {"features":["f"]`, func() (any, error) {
			return c.Features(ctx, FeaturesRequest{Features: []string{"f"}})
		}},
		{"attributes", "POST /v1/features/attributes application/json {", func() (any, error) { return c.Attributes(ctx, AttributesRequest{}) }},
		{"events", "POST /v1/events application/x-ndjson {}", func() (any, error) {
			n, err := c.Publish(ctx, strings.NewReader("{}"))
			return map[string]int{"accepted": n}, err
		}},
	} {
		got, err := test.call()
		if err != nil || operation != test.operation || !strings.HasPrefix(request, test.request) {
			t.Errorf("got %v and the request %s, want %s", err, request, test.request)
			continue
		}
		expect.NoDiff(t, plain(t, got), plain(t, []byte(answer)), "%s of the document, as read", test.operation)
	}
	must.Get(c.Older(ctx, "user:a", "x&y", 0))(t)
	expect.Equal(t, request, "GET /v1/users/user:a/feed?cursor=x%26y", "request")
}

// plain returns a value, or a JSON text, in the generic form of encoding/json.
func plain(t *testing.T, v any) (all any) {
	t.Helper()
	text, ok := v.([]byte)
	if !ok {
		text = must.Get(json.Marshal(v))(t)
	}
	must.OK(t, json.Unmarshal(text, &all))
	return all
}
