package web

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func handler(t *testing.T) http.Handler {
	t.Helper()
	h, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, path string, header ...string) *http.Response {
	r := httptest.NewRequest("GET", path, nil)
	if len(header) == 2 {
		r.Header.Set(header[0], header[1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestFilesAndTheirTypes(t *testing.T) {
	h := handler(t)
	for path, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/console.css": "text/css; charset=utf-8",
		"/console.js": "text/javascript; charset=utf-8", "/icon.svg": "image/svg+xml",
	} {
		res := get(h, path)
		if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != want {
			t.Errorf("%s: %d %q, want 200 %q", path, res.StatusCode, got, want)
		}
		if res.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s has no Content-Security-Policy", path)
		}
		if again := get(h, path, "If-None-Match", res.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s again: %d, want 304", path, again.StatusCode)
		}
	}
	for _, path := range []string{"/nothing", "/static/console.js", "/../go.mod"} {
		if res := get(h, path); res.StatusCode != 404 {
			t.Errorf("%s: %d, want 404", path, res.StatusCode)
		}
	}
}

// What the policy forbids would be dead in a browser, and what the page names must be there.
func TestPageKeepsItsPolicy(t *testing.T) {
	h := handler(t)
	body := new(strings.Builder)
	if err := get(h, "/").Write(body); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"style=", "onclick=", "<script>", "http://", "https://"} {
		if strings.Contains(body.String(), bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(body.String(), -1) {
		if res := get(h, m[1]); res.StatusCode != 200 {
			t.Errorf("the page names %s: %d", m[1], res.StatusCode)
		}
	}
}
