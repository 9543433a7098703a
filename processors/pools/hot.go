package pools

import (
	"sync"

	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// Hot is how often hot pins, and their authors, were shown and saved: what a process makes of the topic hot-pins, which
// it holds whole. It is a rules.Counts, and safe for concurrent use.
type Hot struct {
	ready <-chan struct{}

	mu      sync.RWMutex
	pins    map[schemas.PinID]rules.Count
	authors map[schemas.UserID]rules.Count // the sum over their hot pins
}

// NewHot returns counts that are empty until Change has told them, and known from when ready is closed.
func NewHot(ready <-chan struct{}) *Hot {
	return &Hot{ready: ready, pins: map[schemas.PinID]rules.Count{}, authors: map[schemas.UserID]rules.Count{}}
}

// Ready says whether the counts are known.
func (h *Hot) Ready() bool {
	select {
	case <-h.ready:
		return true
	default:
		return false
	}
}

// Change takes in that the counts of a pin are others: nil is none. It is what topics.Whole.OnChange calls.
func (h *Hot) Change(_ string, was, is *schemas.HotPin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was != nil {
		delete(h.pins, was.Pin)
		h.add(was, -1)
	}
	if is != nil {
		h.pins[is.Pin] = rules.Count{Impressions: is.Impressions, Saves: is.Saves}
		h.add(is, 1)
	}
}

// add adds a pin's counts to its author's; with sign -1 it takes them away.
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
