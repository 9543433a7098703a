package api

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// fuzzed returns a handler without rate limits, because all fuzzed requests have the same address.
func fuzzed(f *testing.F, withAuth bool) http.Handler {
	f.Helper()
	cfg, deps := DefaultConfig(), (&fakes{}).deps()
	cfg.Limits.UserRate = 0
	if withAuth {
		deps.Auth = someTokens()
	}
	s := must.Get(Listen("127.0.0.1:0", cfg, deps))(f)
	f.Cleanup(func() { _ = s.Close() })
	return s.handler()
}

// FuzzRequest sends any request line, Host, header and body to the complete handler, with and without authentication. The
// answer has a status that the OpenAPI document names, and is never an internal error. Without authentication, no unknown
// host name gets an answer. With authentication, a call that needs a token gets an answer only with a known token.
func FuzzRequest(f *testing.F) {
	handlers := map[bool]http.Handler{false: fuzzed(f, false), true: fuzzed(f, true)}
	for _, a := range plainExchanges {
		if len(a.body) < 1000 && !strings.Contains(a.path, "/feed/events") {
			f.Add(a.method, a.path, "127.0.0.1:8080", strings.Join(a.header, "\n"), a.body, false)
		}
	}
	for _, host := range []string{
		"", "localhost", "LOCALHOST:8080", "[::1]", "[::1]:8080", "::1", "127.0.0.1", "evil.example", "evil.example:8080", "127.0.0.1.evil.example",
		"localhost.", "localhost:x:y", "localhost:80I0", "[localhost]", "[evil.example]:80", "[fe80::1%evil]", "0x7f.1", "127.1", ":8080", "[", "]", "user@127.0.0.1", "127.0.0.1/evil.example",
	} {
		f.Add("GET", "/v1/users/user:a/feed", host, "", "", false)
		f.Add("GET", "/v1/users/user:a/feed", host, "Authorization\nBearer a", "", true)
	}
	for _, authorization := range []string{
		"", "Bearer a", "bearer a", "BEARER  a ", "Bearer\ta", "Bearer", "Bearer ", "Basic YTph", "Bearer a, Bearer feed", "Bearera", "a", "Bearer b", "Bearer feed", "Bearer feed,operate", "Bearer operate",
	} {
		f.Add("GET", "/v1/users/user:a/feed", "feed.example", "Authorization\n"+authorization, "", true)
		f.Add("GET", "/v1/status", "feed.example", "authorization\n"+authorization, "", true)
		f.Add("POST", "/v1/events", "feed.example", "Authorization\n"+authorization, save, true)
	}
	f.Add("GET", "/v1%2Fstatus", "feed.example", "", "", true) // a single segment, so not a call: the console answers
	f.Add("GET", "/v1/users/user:a/feed/%65vents", "127.0.0.1:8080", "", "", false)
	f.Add("GET", "/v1/status", "feed.example", "Authorization\nBearer every scope but feed", "", true)
	fine := []int{200, 202, 400, 401, 403, 404, 405, 409, 413, 415}
	f.Fuzz(func(t *testing.T, method, path, host, header, body string, withAuth bool) {
		if !strings.HasPrefix(path, "/") {
			t.Skip() // net/http rejects an invalid line
		}
		r, err := http.NewRequest(method, "http://127.0.0.1:8080"+path, strings.NewReader(body))
		if err != nil || strings.Contains(r.URL.Path, "/feed/events") {
			t.Skip() // a stream has no end, however its path is written
		}
		r.Host = host
		lines := strings.Split(header, "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			r.Header.Set(lines[i], lines[i+1])
		}
		if strings.Contains(r.Header.Get("Authorization"), "away") {
			t.Skip() // that token cannot be checked: 503
		}
		w := httptest.NewRecorder()
		handlers[withAuth].ServeHTTP(w, r)
		// The mux redirects paths that are not clean.
		if !slices.Contains(fine, w.Code) && (w.Code < 300 || w.Code >= 309) {
			t.Errorf("%s %q of %q with %q and %q: got %d %s", method, path, host, header, body, w.Code, w.Body)
		}
		if allowed := w.Code < 300; allowed && !mayCall(r, withAuth) {
			t.Errorf("%s %q of %q with %q, authentication: %t; got %d", method, path, host, header, withAuth, w.Code)
		}
	})
}

// mayCall decides independently of the server whether a request may get an answer.
func mayCall(r *http.Request, withAuth bool) bool {
	if !withAuth { // characters that occur in no IP address and not in localhost
		return !strings.ContainsAny(strings.ToLower(r.Host), "gijkmnpqruvwyz")
	}
	open := []string{"/v1/openapi.json", "/healthz", "/readyz"}
	if firstSegment(r) != "v1" && r.URL.Path != "/metrics" || slices.Contains(open, r.URL.Path) {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if _, known := someTokens()[token]; !known || !strings.EqualFold(scheme, "bearer") {
		return false
	}
	ofServices := []string{"/v1/status", "/metrics", "/v1/events", "/v1/features"}
	return token != "a" && token != "b" || !slices.Contains(ofServices, r.URL.Path)
}

// firstSegment returns the segment that the mux matches: an escaped slash ends no segment.
func firstSegment(r *http.Request) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	unescaped, err := url.PathUnescape(first)
	if err != nil {
		return first
	}
	return unescaped
}
