package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connected(t *testing.T, cfg Config) *Client {
	t.Helper()
	c := must.Get(New(cfg))(t)
	t.Cleanup(c.Close)
	return c
}

func TestNew_Address(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", ":8080": "http://127.0.0.1:8080", "[::1]:80": "http://[::1]:80",
		"https://feeds.example/base": "https://feeds.example/base", "ftp://x": "", "http://": "", "": "", "http://a b": "",
	} {
		c, err := New(Config{Address: addr})
		got := ""
		if err == nil {
			got = c.base.String()
		}
		var wrong *AddressError
		if got != want || want == "" && !errors.As(err, &wrong) {
			t.Errorf("%q: got %q, %v, want %q", addr, got, err, want)
		}
	}
}

func TestGet_RejectsLongAnswer(t *testing.T) {
	long := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `"12345"`) }))
	defer long.Close()
	for most, refused := range map[int64]bool{6: true, 7: false} {
		c := connected(t, Config{Address: long.URL, Most: most})
		expect.Equal(t, expect.ErrorOf(c.Get(t.Context(), nil)) != nil, refused, "7 bytes of at most %d are refused", most)
	}
}

// A server may have processed a visit and then failed before it answered. Only requests that change nothing are repeated.
func TestVisit_IsNeverRepeated(t *testing.T) {
	var mu sync.Mutex
	var heard, keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		heard = append(heard, fmt.Sprint(r.RequestURI, " ", r.ContentLength, r.TransferEncoding, r.Header.Values("Content-Type")))
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		second := len(heard) == 2
		mu.Unlock()
		if !second {
			_, _ = io.WriteString(w, `{"items":[]}`)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			err = conn.Close()
		}
		expect.Error(t, err, "", "close")
	}))
	defer server.Close()
	visit := func(c *Client) (Page, error) { return c.Visit(t.Context(), "user:a", VisitOptions{}) }
	visitOnce := func(c *Client) (Page, error) { return c.VisitOnce(t.Context(), "user:a", "k-1", VisitOptions{}) }
	older := func(c *Client) (Page, error) { return c.Older(t.Context(), "user:a", "x", 0) }
	for _, c := range []struct {
		name     string
		call     func(*Client) (Page, error)
		requests int
	}{{"visit", visit, 2}, {"older", older, 3}, {"visit with a key", visitOnce, 3}} {
		mu.Lock()
		heard, keys = nil, nil
		mu.Unlock()
		client := connected(t, Config{Address: server.URL})
		must.Get(c.call(client))(t)
		_, err := c.call(client)
		mu.Lock()
		requests, sent := heard, keys
		mu.Unlock()
		expect.Equal(t, len(requests), c.requests, "%s: requests %q", c.name, requests)
		expect.Equal(t, err == nil, c.requests == 3, "%s: success, with %v", c.name, err)
		expect.False(t, c.name == "visit" && requests[0] != "/v1/users/user:a/feed 0 [] []", "got the visit as %q, want no body", requests[0])
		if want := []string{"k-1", "k-1", "k-1"}; c.name == "visit with a key" && !slices.Equal(sent, want) {
			t.Errorf("got the keys %q, want %q", sent, want)
		}
	}
}

func TestGet_ReturnsProblem(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "r-1")
		switch r.URL.Path {
		case "/problem":
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":503,"title":"Service Unavailable","detail":"later","errors":["a","b"]}`)
		case "/redirect":
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()
	c := connected(t, Config{Address: server.URL, Token: "canary"})
	for path, want := range map[string]Error{
		"problem":  {Status: 503, Title: "Service Unavailable", Detail: "later", Errors: []string{"a", "b"}, RequestID: "r-1", RetryAfter: 7},
		"proxy":    {Status: 502, Title: "Bad Gateway", RequestID: "r-1"},
		"redirect": {Status: 302, Title: "Found", RequestID: "r-1"},
	} {
		_, err := c.Get(t.Context(), nil, path)
		expect.NoDiffBut(t, cmpopts.EquateEmpty(), *must.As[*Error](t, err), want, "%s", path)
		expect.Omits(t, err.Error(), "canary", "%s: error", path)
	}
}

// A program that imports the client inherits no dependency: not of the server, and not of a third party.
func TestClient_ImportsOnlyStandardLibrary(t *testing.T) {
	out := must.Get(exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output())(t)
	if got := strings.Fields(string(out)); len(got) != 1 || !strings.HasSuffix(got[0], "/serving/client") {
		t.Errorf("got the packages %q, want only this one", got)
	}
}
