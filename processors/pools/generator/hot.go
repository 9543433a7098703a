package generator

import (
	"sync"

	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// Hot holds the impression and save counts of hot pins and of their authors. It is built from the topic hot-pins, a global
// table. It implements rules.Counts and is safe for concurrent use.
type Hot struct {
	readiness

	mu      sync.RWMutex
	pins    map[schemas.PinID]rules.Count
	authors map[schemas.UserID]rules.Count // sum over the author's hot pins
}

// NewHot returns empty counts. Change fills them; they are complete when ready is closed.
func NewHot(ready <-chan struct{}) *Hot {
	return &Hot{readiness: ready, pins: map[schemas.PinID]rules.Count{}, authors: map[schemas.UserID]rules.Count{}}
}

// readiness is closed when a global table is loaded; nil: it is loaded from the start.
type readiness <-chan struct{}

// Ready reports whether the table is loaded.
func (r readiness) Ready() bool {
	select {
	case <-r:
		return true
	default:
		return r == nil
	}
}

// Change replaces the counts of a pin. before is nil if there were none, and after is nil if they are removed. It is a callback
// for topics.GlobalTable.OnChange.
func (h *Hot) Change(_ string, before, after *schemas.HotPin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before != nil {
		delete(h.pins, before.Pin)
		h.add(before, -1)
	}
	if after != nil {
		h.pins[after.Pin] = rules.Count{Impressions: after.Impressions, Saves: after.Saves}
		h.add(after, 1)
	}
}

// add adds a pin's counts, times sign, to those of its author.
func (h *Hot) add(p *schemas.HotPin, sign int64) {
	if p.Author == "" {
		return
	}
	sum := h.authors[p.Author]
	sum.Impressions += sign * p.Impressions
	sum.Saves += sign * p.Saves
	h.authors[p.Author] = sum
	if sum == (rules.Count{}) {
		delete(h.authors, p.Author)
	}
}

// Pin implements rules.Counts.
func (h *Hot) Pin(pin schemas.PinID) rules.Count {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.pins[pin]
}

// Author implements rules.Counts.
func (h *Hot) Author(author schemas.UserID) rules.Count {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.authors[author]
}
