// Package web is the console: a page that shows a feed as its user sees it, the pools behind it, live features, the
// pipeline as a picture, and how the product is used. Static files in the binary; nothing is built and nothing is loaded
// from elsewhere, and the page is told so (Content-Security-Policy). It talks to the calls of package api alone.
//
//	js/main.js       whose feed, which view, what is asked for again while it is looked at
//	js/feed.js …     a view each: feed with rail beside it, pools, features, interests, pipeline with picture, insights with plots
//	js/api.js        calls, streams of events, tokens
//	js/dom.js        building blocks; what comes from the API goes in as text, never as markup
//
// What an answer lacks, and what could not be asked, is said where it would stand: what is not known is never shown as
// nothing.
//
// Whoever cannot point or cannot see uses all of it: landmarks, a heading for each view that gets the focus, what changes
// is announced, every plot is a table, too.
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

// policy allows the page its own files and calls, and nothing else; no text becomes markup or code. What is coloured or
// sized by data is so through CSS custom properties that scripts set in the CSSOM, which needs no exception.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// types are those of the files there are; the system's own table may lack or differ.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// file is one static file with its entity tag.
type file struct {
	body []byte
	etag string
	kind string
}

// Handler serves the console at / and its files beside it; anything else is a 404. It is for GET and HEAD. It fails only if the program was built
// without its files.
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
	files["/"] = files["/index.html"]
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
	h.Set("Cache-Control", "no-cache") // kept, but asked for each time: a new binary shows at once
	h.Set("ETag", f.etag)
	h.Set("Content-Type", f.kind)
	http.ServeContent(w, r, r.URL.Path, time.Time{}, bytes.NewReader(f.body))
}

// notFound answers as the API does (RFC 9457).
func notFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"type":"about:blank","title":"Not Found","status":404,` +
		`"detail":"there is no such page; the console is at /, the calls of the API are in /v1/openapi.json"}` + "\n"))
}
