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
	"embed"
	"io/fs"
	"net/http"
	"path"
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

// Handler serves the console at /, the documentation of the API at /docs, and their files. Any other path is a 404. It serves
// GET and HEAD.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, r *http.Request) {
	name := "static" + r.URL.Path
	switch r.URL.Path {
	case "/":
		name = "static/index.html"
	case "/docs":
		name = "static/docs.html"
	}
	kind, ok := types[path.Ext(name)]
	if _, err := fs.Stat(static, name); err != nil || !ok {
		notFound(w)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // a new binary is visible at once
	h.Set("Content-Type", kind)
	http.ServeFileFS(w, r, static, name)
}

// notFound responds as the API does (RFC 9457).
func notFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"type":"about:blank","title":"Not Found","status":404,` +
		`"detail":"no such page; the console is at /, and /v1/openapi.json lists the calls of the API"}` + "\n"))
}
