package web

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func get(path string) *http.Response {
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Result()
}

func TestHandler_ServesFiles(t *testing.T) {
	for path, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/docs": "text/html; charset=utf-8", "/css/base.css": "text/css; charset=utf-8",
		"/js/main.js": "text/javascript; charset=utf-8", "/icon.svg": "image/svg+xml",
		"/vendor/dagre.js": "text/javascript; charset=utf-8", "/vendor/dagre.txt": "text/plain; charset=utf-8",
	} {
		res := get(path)
		if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != want {
			t.Errorf("%s: %d %q, want 200 %q", path, res.StatusCode, got, want)
		}
		expect.True(t, res.Header.Get("Content-Security-Policy") != "", "%s has a Content-Security-Policy", path)
	}
	for _, path := range []string{"/nothing", "/js", "/js/", "/static/js/main.js", "/../go.mod"} {
		res := get(path)
		var problem struct{ Status int }
		must.OK(t, json.NewDecoder(res.Body).Decode(&problem))
		if got := res.Header.Get("Content-Type"); res.StatusCode != 404 || problem.Status != 404 || got != "application/problem+json" {
			t.Errorf("%s: got %d %q, want a problem document with 404", path, res.StatusCode, got)
		}
	}
}

// A browser ignores parts that the policy forbids. The files that the pages refer to must exist.
func TestPages_FollowTheirPolicy(t *testing.T) {
	for _, page := range []string{"/", "/docs"} {
		body := text(t, page)
		for _, bad := range []string{"style=", "onclick=", "<script>", "http://", "https://"} {
			expect.Omits(t, body, bad, "%s", page)
		}
		for _, m := range regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(body, -1) {
			if api := m[1] == "/metrics" || strings.HasPrefix(m[1], "/v1/"); api {
				continue
			}
			expect.Equal(t, get(m[1]).StatusCode, 200, "status of %[2]s, to which %[1]s refers", page, m[1])
		}
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	return string(must.Get(io.ReadAll(get(path).Body))(t))
}

// scripts returns the console's scripts, by path.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	files, err := fs.Glob(static, "static/js/*.js")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d scripts, %v", len(files), err)
	}
	texts := map[string]string{}
	for _, f := range files {
		path := strings.TrimPrefix(f, "static")
		texts[path] = text(t, path)
	}
	return texts
}

// Data from the API must not become markup or code, and elements that scripts use must be on the page.
func TestScripts_UseOnlyThePage(t *testing.T) {
	page, used := text(t, "/"), 0
	for path, script := range scripts(t) {
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https://", "//cdn", ".style =", "'style'"} {
			expect.Omits(t, script, bad, "%s", path)
		}
		for _, m := range regexp.MustCompile(`\$\('([\w-]+)'\)`).FindAllStringSubmatch(script, -1) {
			used++
			expect.Contains(t, page, `id="`+m[1]+`"`, "the page, with an element that %s uses", path)
		}
	}
	docs := text(t, "/docs")
	for _, m := range regexp.MustCompile(`byId\('([\w-]+)'\)`).FindAllStringSubmatch(scripts(t)["/js/docs.js"], -1) {
		expect.Contains(t, docs, `id="`+m[1]+`"`, "the page, with an element that /js/docs.js uses")
	}
	expect.AtLeast(t, used, 50, "elements that the scripts use")
}

// The library is the file of the npm package, and needs no exception from the policy.
func TestVendor_IsUnchanged(t *testing.T) {
	script := text(t, "/vendor/dagre.js")
	const want = "b0ddaf4af1417bec9bd89373a3a3987f081727d6cc6d95fc40dbf85a19bdf3b0" // of dist/dagre.esm.js in @dagrejs/dagre 3.1.3
	expect.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(script))), want, "vendor/dagre.js has the SHA-256")
	for _, bad := range []string{"eval(", "new Function", "innerHTML", "import(", "fetch("} {
		expect.Omits(t, script, bad, "vendor/dagre.js")
	}
}

// Every import of a script exists, under the imported name.
func TestScripts_ImportsExist(t *testing.T) {
	all, found := scripts(t), 0
	for path, script := range all {
		for _, m := range regexp.MustCompile(`import (?:\* as \w+|{([^}]*)}) from '\./([\w.]+)'`).FindAllStringSubmatch(script, -1) {
			from, here := all["/js/"+m[2]]
			expect.True(t, here, "%s imports %s, which exists", path, m[2])
			for name := range strings.SplitSeq(m[1], ",") {
				found++
				name = strings.TrimSpace(name)
				if name != "" && !regexp.MustCompile(`export (?:async )?(?:function|class|const) `+regexp.QuoteMeta(name)+`[ (]`).MatchString(from) {
					t.Errorf("%s imports %s, which %s does not export", path, name, m[2])
				}
			}
		}
	}
	expect.AtLeast(t, found, 20, "imports")
}

// Screen readers need a label for every field.
func TestPage_FieldsHaveLabels(t *testing.T) {
	page := text(t, "/")
	for _, m := range regexp.MustCompile(`<(?:input|select|textarea) id="([\w-]+)"`).FindAllStringSubmatch(page, -1) {
		expect.Contains(t, page, `for="`+m[1]+`">`, "the page, with a label")
	}
}
