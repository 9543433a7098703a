package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// Without authentication, a page of another site can make a browser send any request, and a visit changes something although
// it is a GET. A browser does not store bearer tokens: a client that sends one does so deliberately.
func TestForeign_RejectsCrossSiteVisits(t *testing.T) {
	const visit, older, peek = "/v1/users/user:a/feed", "/v1/users/user:a/feed?cursor=good", "/v1/users/user:a/feed?peek=true"
	for _, c := range []struct {
		name, path string
		header     []string
		tokens     bool
		want       int
	}{
		{"another site", visit, []string{"Sec-Fetch-Site", "cross-site"}, false, 403},
		{"another port of this machine", visit, []string{"Sec-Fetch-Site", "same-site"}, false, 403},
		{"another site by an old browser", visit, []string{"Origin", "https://evil.example"}, false, 403},
		{"the console", visit, []string{"Sec-Fetch-Site", "same-origin"}, false, 200},
		{"typed address", visit, []string{"Sec-Fetch-Site", "none"}, false, 200},
		{"no browser", visit, nil, false, 200},
		{"another site, no change", older, []string{"Sec-Fetch-Site", "cross-site"}, false, 200},
		{"another site, a peek", peek, []string{"Sec-Fetch-Site", "cross-site"}, false, 200},
		{"another site, with a token", visit, []string{"Sec-Fetch-Site", "cross-site", "Authorization", "Bearer a"}, true, 200},
	} {
		f := &fakes{}
		s := listen(t, f, func(_ *Config, d *Deps) {
			if c.tokens {
				d.Auth = someTokens()
			}
		})
		if got := roundTrip(s, "GET", c.path, "", c.header...).StatusCode; got != c.want || got != 200 && len(f.visits) > 0 {
			t.Errorf("%s: got %d after %d visits, want %d", c.name, got, len(f.visits), c.want)
		}
	}
}

func TestForeign_RejectsCrossSitePeerCalls(t *testing.T) {
	called := false
	s := listen(t, &fakes{}, func(_ *Config, d *Deps) {
		d.Peer = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true })
	})
	if got := roundTrip(s, "POST", "/peer/settle", "{}", "Sec-Fetch-Site", "cross-site").StatusCode; got != 403 || called {
		t.Errorf("got %d, handler called: %t; want 403 and false", got, called)
	}
	if got := roundTrip(s, "POST", "/peer/settle", "{}").StatusCode; got != 200 || !called {
		t.Errorf("a peer: got %d, want 200", got)
	}
}

// A site can make its name resolve to this machine. Its pages then have the same origin as the server, but their requests
// use that name.
func TestForeign_RejectsUnknownHostsWithoutAuth(t *testing.T) {
	bare := func(_ *Config, d *Deps) { d.Peer = http.NotFoundHandler() }
	insecure := func(c *Config, _ *Deps) { c.Insecure, c.AllowedHosts = true, []string{"process-1"} }
	paths := []string{"/v1/users/user:a/feed", "/v1/status", "/v1/nothing", "/peer/chunk", "/metrics", "/healthz", "/"}
	for _, c := range []struct {
		host     string
		change   func(*Config, *Deps)
		rejected bool
	}{
		{"evil.example", bare, true},
		{"evil.example:8080", bare, true},
		{"127.0.0.1.evil.example:8080", bare, true},
		{"localhost.evil.example", bare, true},
		{"server", bare, true},
		{"127.0.0.1:x:y", bare, true},
		{"127.0.0.1:8080", bare, false},
		{"127.0.0.1", bare, false},
		{"[::1]:8080", bare, false},
		{"[::1]", bare, false},
		{"localhost:8080", bare, false},
		{"LocalHost", bare, false},
		{"", bare, false}, // from HTTP/1.0, which no browser uses
		{"feed.example", authenticated, false},
		{"process-1:8080", insecure, false},
		{"Process-1", insecure, false},
		{"process-1.evil.example", insecure, true},
		{"evil.example:8080", insecure, true},
	} {
		h := listen(t, &fakes{}, c.change).handler()
		for _, path := range paths {
			r := httptest.NewRequest("GET", path, nil)
			r.Host = c.host
			w := recorder{httptest.NewRecorder()}
			h.ServeHTTP(w, r)
			res := w.Result()
			body := must.Get(io.ReadAll(res.Body))(t)
			if got := strings.Contains(string(body), "while authentication is disabled"); got != c.rejected {
				t.Errorf("%s of %q: got %d %.200s, rejected for its name: want %t", path, c.host, res.StatusCode, body, c.rejected)
			}
			if c.rejected {
				checkProblem(t, 403, body)
			}
		}
	}
}
