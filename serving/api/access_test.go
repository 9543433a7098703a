package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/auth"
)

// tokens maps tokens to callers. The token "unavailable" cannot be checked.
type tokens map[string]auth.Caller

func (k tokens) Verify(_ context.Context, token string) (auth.Caller, error) {
	c, known := k[token]
	switch {
	case token == "unavailable":
		return auth.Caller{}, auth.ErrNoKeys
	case token == "neither":
		return auth.Caller{}, &auth.IdentityError{Reason: "its subject is unknown"}
	case !known:
		return auth.Caller{}, &auth.TokenError{Reason: "it is unknown"}
	}
	return c, nil
}

// someTokens returns a token of user:a, one of user:b, and one of each scope.
func someTokens() tokens {
	k := tokens{
		"a": {Subject: "user:a", User: "user:a"}, "b": {Subject: "user:b", User: "user:b"},
		"every scope but " + auth.Feed: {Subject: "x", Scopes: []string{auth.Features, auth.Events, auth.Operate}},
	}
	for _, scope := range auth.Scopes() {
		k[scope] = auth.Caller{Subject: scope + "-service", Scopes: []string{scope}}
	}
	return k
}

// authenticated enables authentication with someTokens.
func authenticated(_ *Config, d *Deps) { d.Auth = someTokens() }

// The OpenAPI document states for each call which callers may make it, and the table of routes agrees.
func TestDocument_StatesAccess(t *testing.T) {
	doc := document(t)
	of := map[string]access{}
	for _, r := range listen(t, &fakes{}, nil).routes() {
		of[r.method+" "+r.path] = r.access
	}
	eachOperation(t, doc, func(method, path string, op object) {
		got := access{}
		security, said := op["security"].([]any)
		expect.True(t, said, "%s %s states its callers", method, path)
		for _, alternative := range security {
			switch alternative := alternative.(object); {
			case alternative["self"] != nil:
				got.users = ownData
			case alternative["user"] != nil:
				got.users = allData
			case alternative["scrape"] != nil:
				got.scrape = true
			default:
				scope := alternative["service"].([]any)[0].(string)
				if scope == auth.View {
					got.view = true
				} else if got.scope == "" {
					got.scope = scope
				} else if strings.HasPrefix(scope, got.scope+":") {
					got.parts = true
				} else {
					t.Errorf("%s %s: a second scope %q", method, path, scope)
				}
			}
		}
		expect.Equal(t, got, of[method+" "+path], "%s %s: access in the table, and in the document", method, path)
	})
	schemes := at(doc, "components", "securitySchemes")
	if len(schemes) != 4 || schemes["scrape"] == nil || schemes["self"] == nil || schemes["user"] == nil || schemes["service"] == nil {
		t.Errorf("got the schemes %v", schemes)
	}
}

// Every call that is not in this list needs a token.
func TestRoutes_OpenCalls(t *testing.T) {
	var got []string
	for _, r := range listen(t, &fakes{}, nil).routes() {
		if r.access == (access{}) {
			got = append(got, r.path)
		}
		if r.access.scope != "" && !slices.Contains(auth.Scopes(), r.access.scope) {
			t.Errorf("%s needs the unknown scope %q", r.path, r.access.scope)
		}
		expect.False(t, r.access.users == ownData && !strings.Contains(r.path, "{user}"), "%s has the data of a user, without its id", r.path)
	}
	expect.NoDiff(t, got, []string{"/v1/caller", "/v1/openapi.json", "/docs", "/healthz", "/readyz"}, "paths")
}

// Every token that a request does not name is rejected.
func TestAccess_PermitsOnlyListedTokens(t *testing.T) {
	const others = "every scope but feed"
	k := someTokens()
	k["a with scopes"] = auth.Caller{Subject: "user:a", User: "user:a", Scopes: auth.Scopes()} // scopes are for services
	s := listen(t, &fakes{}, func(c *Config, d *Deps) { d.Auth, c.Limits.UserRate = k, 0 })
	for request, permitted := range map[string][]string{
		"GET /v1/users/user:a/feed":                  {"a", "a with scopes", auth.Feed},
		"GET /v1/users/user%3Aa/feed":                {"a", "a with scopes", auth.Feed},
		"GET /v1/users/user:a%2Ffeed/feed":           {auth.Feed},
		"GET /v1/users/user:A/feed":                  {auth.Feed},
		"POST /v1/users/user:a/visits":               {"a", "a with scopes", auth.Feed},
		"GET /v1/users/user:b/feed/new":              {"b", auth.Feed, auth.View},
		"GET /v1/users/user:b/feed/events":           {"b", auth.Feed, auth.View},
		"GET /v1/users/user:b/feed/why?pin=pin:1":    {"b", auth.Feed, auth.View},
		"GET /v1/users/user:b/feed/state":            {"b", auth.Feed, auth.View},
		"GET /v1/users/user:b/pools?source=interest": {"b", auth.Feed, auth.View},
		"GET /v1/users/user:b/pins":                  {"a", "a with scopes", "b", auth.Feed, auth.View},
		"GET /v1/pins/pin:1/related":                 {"a", "a with scopes", "b", auth.Feed, auth.View},
		"GET /v1/features":                           {auth.Features, others, auth.View},
		"POST /v1/features":                          {auth.Features, others, auth.View},
		"POST /v1/features/attributes":               {auth.Features, others, auth.View},
		"POST /v1/features/try":                      {auth.Features, others, auth.View},
		"POST /v1/events":                            {auth.Events, auth.EventsOf("actions"), others},
		"GET /v1/status":                             {auth.Operate, others, auth.View},
		"GET /metrics":                               {auth.Operate, others, auth.View},
	} {
		a := row(request, "", 0, "")
		body := first(a.method, a.route).body
		for token := range k {
			want := 403
			if slices.Contains(permitted, token) {
				want = first(a.method, a.route).code
			}
			got := roundTrip(s, a.method, a.path, body, "Authorization", "Bearer "+token).StatusCode
			expect.Equal(t, got, want, "%s with the token %q", request, token)
		}
	}
	for header, want := range map[string]int{"Bearer ": 401, "": 401, "bearer a": 200, "Basic a": 401} { // RFC 9110, 11.1
		expect.Equal(t, roundTrip(s, "GET", "/v1/users/user:a/feed", "", "Authorization", header).StatusCode, want, "the header %q", header)
	}
	for _, path := range []string{"/", "/healthz"} {
		expect.Equal(t, roundTrip(s, "GET", path, "").StatusCode, 200, "%s without a token", path)
	}
}

// Trials have their own limit: the maximum number of trials does not block other requests for features.
func TestTrials_HaveTheirOwnLimit(t *testing.T) {
	s := listen(t, &fakes{}, nil)
	for s.gates.Enter(string(trial)) {
	}
	for path, want := range map[string]int{"/v1/features": 200, "/v1/features/try": 503} {
		expect.Equal(t, roundTrip(s, "POST", path, first("POST", path).body).StatusCode, want, "%s", path)
	}
}

func TestAccess_Challenges(t *testing.T) {
	s := listen(t, &fakes{}, authenticated)
	for header, want := range map[string]string{
		"": "Bearer", "Bearer x": `Bearer error="invalid_token"`, "Bearer a": `Bearer error="insufficient_scope", scope="operate"`,
		"Bearer neither": `Bearer error="insufficient_scope"`,
	} {
		expect.Equal(t, roundTrip(s, "GET", "/v1/status", "", "Authorization", header).Header.Get("WWW-Authenticate"), want, "%q", header)
	}
}

func TestMetrics_ScrapeTokenPermitsOnlyMetrics(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scrape.token")
	write := func(token string) {
		must.OK(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	}
	first, second := strings.Repeat("1", 32), strings.Repeat("2", 32)
	write(first)
	s := listen(t, &fakes{}, func(_ *Config, d *Deps) {
		d.Auth, d.Scrape = someTokens(), auth.ScrapeToken{File: file}.Check
	})
	check := func(path, token string, want int) {
		t.Helper()
		got := roundTrip(s, "GET", path, "", "Authorization", "Bearer "+token).StatusCode
		expect.Equal(t, got, want, "%s with the token %.6s…", path, token)
	}
	check("/metrics", first, 200)
	check("/metrics", second, 401)
	check("/metrics", "", 401)
	check("/metrics", auth.Operate, 200)
	for _, path := range []string{"/v1/status", "/v1/features", "/v1/users/user:a/feed", "/v1/insights/growth"} {
		check(path, first, 401)
	}
	write(second)
	check("/metrics", first, 401)
	check("/metrics", second, 200)
	write("short")
	check("/metrics", "short", 401)
	must.OK(t, os.Remove(file))
	check("/metrics", second, 401)
	check("/metrics", auth.Operate, 200)
}

// peersOnly accepts one peer.
type peersOnly struct{}

func (peersOnly) Check(r *http.Request) error {
	if r.Header.Get("Authorization") != "Bearer peer" {
		return &auth.TokenError{Reason: "not of a peer"}
	}
	return nil
}

func TestPeer_RequiresPeerToken(t *testing.T) {
	s := listen(t, &fakes{}, func(_ *Config, d *Deps) {
		d.Auth, d.Peers = someTokens(), peersOnly{}.Check
		d.Peer = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	})
	for token, want := range map[string]int{"peer": 418, "": 401, "feed": 401, "all": 401} {
		expect.Equal(t, roundTrip(s, "POST", "/peer/chunk", "", "Authorization", "Bearer "+token).StatusCode, want, "%q", token)
	}
}

func TestCheckExposure(t *testing.T) {
	for _, c := range []struct {
		name  string
		deps  Exposure
		allow bool
		want  string // for an address that others can reach; "": accepted
	}{
		{"no authentication", Exposure{}, false, "set auth.jwks or auth.secret_file"},
		{"no authentication, insecure set", Exposure{}, true, ""},
		{"callers authenticated", Exposure{Callers: true}, false, ""},
		{"callers and peers authenticated", Exposure{true, true, true}, false, ""},
		{"only callers authenticated", Exposure{true, true, false}, true, "set peers.secret_file"},
		{"only peers authenticated", Exposure{false, true, true}, false, "set auth.jwks"},
	} {
		cfg := Config{Insecure: c.allow}
		for _, addr := range []string{"0.0.0.0:80", ":80", "[::]:80", "192.0.2.1:80", "example.com:80", "127.0.0.1.example.com:80"} {
			expect.Error(t, CheckExposure(addr, cfg, c.deps), c.want, "%s, %s", c.name, addr)
		}
	}
	for _, addr := range []string{"127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "localhost:80"} {
		expect.Error(t, CheckExposure(addr, Config{}, Exposure{}), "", "%s", addr)
	}
	expect.Error(t, CheckExposure("127.0.0.1", Config{Insecure: true}, Exposure{}), "is not host:port", "no port")
}

// The content of a token, valid or not, is neither logged nor answered.
func TestTokens_AreNeitherLoggedNorAnswered(t *testing.T) {
	var log logged
	s := listen(t, &fakes{fail: errors.New("broken")}, func(_ *Config, d *Deps) {
		k := someTokens()
		k["canary-good"] = auth.Caller{Subject: "service", Scopes: auth.Scopes()}
		d.Auth, d.Log = k, log.logger(slog.LevelDebug)
	})
	for _, token := range []string{"canary-good", "canary-bad"} {
		for _, path := range []string{"/v1/users/user:a/feed", "/v1/status", "/metrics", "/v1/nothing", "/v1/features?access_token=canary"} {
			res := roundTrip(s, "GET", path, "", "Authorization", "Bearer "+token)
			var text strings.Builder
			must.OK(t, res.Write(&text))
			expect.False(t, strings.Contains(text.String(), "canary") && !strings.Contains(path, "canary"), "%s answers the token: %s", path, &text)
		}
	}
	if text := log.String(); strings.Contains(text, "canary") || !strings.Contains(text, "code=401") {
		t.Errorf("got the log %s, want 401s in it and no token", text)
	}
}
