package rows

import (
	"maps"
	"regexp"
	"strings"
	"sync"
)

// reasons counts by reason. The zero value is ready to use.
type reasons struct {
	mu sync.Mutex
	n  map[string]int64
}

const (
	maxReasons  = 64      // distinguished reasons: a reason that contains an id must not fill the memory
	otherReason = "other" // counts all further reasons
)

func (r *reasons) count(reason string) { r.add(reason, 1) }

func (r *reasons) add(reason string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == nil {
		r.n = map[string]int64{}
	}
	if _, known := r.n[reason]; !known && len(r.n) >= maxReasons {
		reason = otherReason
	}
	r.n[reason] += int64(n)
}

// snapshot returns the counts, or nil if there are none.
func (r *reasons) snapshot() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.n)
}

// kinds maps reasons to kinds of reasons.
type kinds struct{ varying *regexp.Regexp }

func newKinds() kinds { return kinds{regexp.MustCompile(`"(?:[^"\\]|\\.)*"?|[-+]?\d[\d.eE+-]*`)} }

// of returns the reason of a dead letter without the parts that vary between records: quoted text, numbers, and everything
// beyond maxKind.
func (k kinds) of(reason string) string {
	if len(reason) > maxKindBytes {
		reason = strings.ToValidUTF8(reason[:maxKindBytes], "")
	}
	return k.varying.ReplaceAllString(reason, "…")
}

const maxKindBytes = 200 // bytes
