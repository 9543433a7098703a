// Package web serves the console: a page with the feed of a user, also compared with another feed, the user's pools, graph and
// live features, a diagram of the pipeline, insights into the usage of the product, experiments, and the configuration. The static files are in the binary. There is no build step, and
// the Content-Security-Policy forbids loading anything from other servers. The page only uses the routes of package
// api.
//
//	js/main.js       the user, the view, and periodic updates of the view
//	js/feed.js …     one file per view: feed with sidebar, pools, features, interests, pipeline with diagram, insights with plots,
//	                 experiments
//	js/api.js        requests, event streams, tokens; js/permissions.js disables controls that the token does not permit
//	js/docs.js       the documentation of the API, rendered from /v1/openapi.json
//	js/dom.js        DOM helpers; data from the API is inserted as text, never as markup
//	vendor/dagre.js  dist/dagre.esm.js of the npm package @dagrejs/dagre 3.1.3, unchanged; dagre.txt is its license (MIT)
//
// The page names missing parts and errors at the place of the data. It never shows unknown data as empty.
//
// The console is accessible without a pointer and without sight: it has landmarks, each view has a heading that
// receives the focus, changes are announced, and every plot is also a table.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// policy allows the page only its own files and requests. No text becomes markup or code. Colors and sizes that depend
// on data are CSS custom properties that scripts set through the CSSOM, which needs no exception.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// types are the content types of the files. The system's own table may be incomplete or different.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// file is a static file with its entity tag.
type file struct {
	body []byte
	etag string
	kind string
}

// Handler serves the console at /, the documentation of the API at /docs, and their files. Any other path is a 404. It serves
// GET and HEAD, and answers a matching If-None-Match with 304. It returns an error only if the program was built without the
// files.
func Handler() (http.Handler, error) {
	files := map[string]file{}
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := static.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		f := file{body: body, etag: `"` + hex.EncodeToString(sum[:8]) + `"`, kind: types[path.Ext(name)]}
		files["/"+strings.TrimPrefix(name, "static/")] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the console's files: %w", err)
	}
	files["/"], files["/docs"] = files["/index.html"], files["/docs.html"]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(files, w, r) }), nil
}

func serve(files map[string]file, w http.ResponseWriter, r *http.Request) {
	f, ok := files[r.URL.Path]
	if !ok {
		notFound(w)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // cached, but revalidated each time, so that a new binary is visible at once
	h.Set("ETag", f.etag)
	h.Set("Content-Type", f.kind)
	http.ServeContent(w, r, r.URL.Path, time.Time{}, bytes.NewReader(f.body))
}

// notFound responds as the API does (RFC 9457).
func notFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"type":"about:blank","title":"Not Found","status":404,` +
		`"detail":"no such page; the console is at /, and /v1/openapi.json lists the calls of the API"}` + "\n"))
}
