package rows

import (
	"maps"
	"regexp"
	"strings"
	"sync"
)

// reasons counts by reason. The zero value is ready for use.
type reasons struct {
	mu sync.Mutex
	n  map[string]int64
}

const (
	mostReasons = 64      // that are told apart; a Count with an id in its reason must not fill the memory
	otherReason = "other" // takes the rest
)

func (r *reasons) count(reason string) { r.add(reason, 1) }

func (r *reasons) add(reason string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == nil {
		r.n = map[string]int64{}
	}
	if _, known := r.n[reason]; !known && len(r.n) >= mostReasons {
		reason = otherReason
	}
	r.n[reason] += int64(n)
}

// snapshot returns nil if nothing has been counted.
func (r *reasons) snapshot() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.n)
}

// kinds tells the kinds of reasons apart.
type kinds struct{ varying *regexp.Regexp }

func newKinds() kinds { return kinds{regexp.MustCompile(`"(?:[^"\\]|\\.)*"?|[-+]?\d[\d.eE+-]*`)} }

// of leaves what differs from record to record out of the reason of a dead letter: quoted text, numbers, and what is
// beyond maxKind.
func (k kinds) of(reason string) string {
	if len(reason) > maxKind {
		reason = strings.ToValidUTF8(reason[:maxKind], "")
	}
	return k.varying.ReplaceAllString(reason, "…")
}

const maxKind = 200 // bytes
