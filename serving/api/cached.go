package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// minCompressed is the minimum length in bytes of a compressed answer. A shorter one fits one packet.
const minCompressed = 1400

// gzipSuffix is the suffix that the compressor adds to the ETag of a compressed answer.
const gzipSuffix = "-gzip"

const ifNoneMatch = "If-None-Match"

// compressor returns a middleware that compresses answers with gzip for clients that accept it, and that recognizes the ETags of
// compressed answers. It must not be used for streams: each event must be sent at once.
func compressor() (func(http.Handler) http.HandlerFunc, error) {
	compress, err := gzhttp.NewWrapper(
		gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(1), // feeds shrink to a fifth; a higher level saves little more
		gzhttp.EnableZstd(false), gzhttp.SuffixETag(gzipSuffix),
		gzhttp.ContentTypes([]string{
			"application/json", "application/problem+json", "text/html", "text/css", "text/javascript", "image/svg+xml",
		}))
	if err != nil {
		return nil, fmt.Errorf("compress answers: %w", err)
	}
	return func(h http.Handler) http.HandlerFunc {
		return compress(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tags := r.Header.Get(ifNoneMatch); strings.Contains(tags, gzipSuffix) {
				r.Header.Set(ifNoneMatch, strings.ReplaceAll(tags, gzipSuffix+`"`, `"`))
			}
			h.ServeHTTP(w, r)
		}))
	}, nil
}

// writeCached writes a value that changes rarely. Only the caller's own cache may keep it, and must revalidate it each time,
// because a deleted item must not stay visible.
func writeCached(w http.ResponseWriter, r *http.Request, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	writeTagged(w, r, "private, no-cache", append(body, '\n'))
	return nil
}

// writeTagged writes JSON, or 304 if the caller has the current version.
func writeTagged(w http.ResponseWriter, r *http.Request, control string, body []byte) {
	sum := sha256.Sum256(body)
	tag := base64.RawURLEncoding.EncodeToString(sum[:12])
	h := w.Header()
	h.Set("Cache-Control", control)
	h.Set("ETag", `"`+tag+`"`)
	if matches(r.Header.Get(ifNoneMatch), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	write(w, http.StatusOK, "application/json", body)
}

// matches reports whether a list of ETags contains a tag, RFC 9110, 13.1.2. Weak tags match, too.
func matches(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.Trim(strings.TrimPrefix(strings.TrimSpace(one), "W/"), `"`)
		if one == "*" || one == tag {
			return true
		}
	}
	return false
}
