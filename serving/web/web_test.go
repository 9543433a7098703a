package web

import (
	"encoding/json"
	"io"
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
		res := get(h, path)
		var problem struct{ Status int }
		if err := json.NewDecoder(res.Body).Decode(&problem); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if got := res.Header.Get("Content-Type"); res.StatusCode != 404 || problem.Status != 404 || got != "application/problem+json" {
			t.Errorf("%s: %d %q, want a problem of a 404", path, res.StatusCode, got)
		}
	}
}

// What the policy forbids would be dead in a browser, and what the page names must be there.
func TestPageKeepsItsPolicy(t *testing.T) {
	h := handler(t)
	body := text(t, h, "/")
	for _, bad := range []string{"style=", "onclick=", "<script>", "http://", "https://"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(body, -1) {
		if res := get(h, m[1]); res.StatusCode != 200 {
			t.Errorf("the page names %s: %d", m[1], res.StatusCode)
		}
	}
}

func text(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	body, err := io.ReadAll(get(h, path).Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// What comes from the API must not become markup or code, and what the script looks for must be on the page.
func TestScriptKeepsToThePage(t *testing.T) {
	h := handler(t)
	page, script := text(t, h, "/"), text(t, h, "/console.js")
	for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://", "https://", "//cdn"} {
		if strings.Contains(script, bad) {
			t.Errorf("the script has %s", bad)
		}
	}
	looked := regexp.MustCompile(`\$\('([\w-]+)'\)`).FindAllStringSubmatch(script, -1)
	if len(looked) < 10 {
		t.Fatalf("the script looks for %d elements, want those of the page", len(looked))
	}
	for _, m := range looked {
		if !strings.Contains(page, `id="`+m[1]+`"`) {
			t.Errorf("the script looks for #%s, which is not on the page", m[1])
		}
	}
}

// A name without a label is nothing to a screen reader.
func TestFieldsHaveLabels(t *testing.T) {
	page := text(t, handler(t), "/")
	for _, m := range regexp.MustCompile(`<(?:input|select) id="(\w+)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, `<label for="`+m[1]+`">`) {
			t.Errorf("#%s has no label", m[1])
		}
	}
}
