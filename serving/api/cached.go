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

// leastPacked is the length of answers, in bytes, from which they are packed: one packet holds what is shorter.
const leastPacked = 1400

// packedTag is what the packer adds to the tag of an answer that it packs.
const packedTag = "-gzip"

const ifNoneMatch = "If-None-Match"

// packer makes what packs answers for those who take gzip, and knows them again by the tags of what was packed. Streams are
// not among them: each event is to leave at once.
func packer() (func(http.Handler) http.HandlerFunc, error) {
	pack, err := gzhttp.NewWrapper(
		gzhttp.MinSize(leastPacked), gzhttp.CompressionLevel(1), // feeds shrink to a fifth; a higher level saves little more
		gzhttp.EnableZstd(false), gzhttp.SuffixETag(packedTag),
		gzhttp.ContentTypes([]string{
			"application/json", "application/problem+json", "text/html", "text/css", "text/javascript", "image/svg+xml",
		}))
	if err != nil {
		return nil, fmt.Errorf("pack answers: %w", err)
	}
	return func(h http.Handler) http.HandlerFunc {
		return pack(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tags := r.Header.Get(ifNoneMatch); strings.Contains(tags, packedTag) {
				r.Header.Set(ifNoneMatch, strings.ReplaceAll(tags, packedTag+`"`, `"`))
			}
			h.ServeHTTP(w, r)
		}))
	}, nil
}

// writeCached answers a value that changes rarely. Caches may keep it, for its caller alone, and ask each time whether it
// still holds: what is deleted must not be shown for a while longer.
func writeCached(w http.ResponseWriter, r *http.Request, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	writeTagged(w, r, "private, no-cache", append(body, '\n'))
	return nil
}

// writeTagged answers JSON, or 304 to whoever has it.
func writeTagged(w http.ResponseWriter, r *http.Request, control string, body []byte) {
	sum := sha256.Sum256(body)
	tag := base64.RawURLEncoding.EncodeToString(sum[:12])
	h := w.Header()
	h.Set("Cache-Control", control)
	h.Set("ETag", `"`+tag+`"`)
	if has(r.Header.Get(ifNoneMatch), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	write(w, http.StatusOK, "application/json", body)
}

// has looks for a tag in a list of them, RFC 9110, 13.1.2. A weak one stands for the same.
func has(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.Trim(strings.TrimPrefix(strings.TrimSpace(one), "W/"), `"`)
		if one == "*" || one == tag {
			return true
		}
	}
	return false
}
