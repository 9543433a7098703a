package limit

import "sync"

// Held limits how many places each caller holds at once. It is safe for concurrent use. It keeps state only for callers that
// hold places, so its size is bounded by the number of places.
type Held struct {
	most int

	mu   sync.Mutex
	held map[string]int
}

// NewHeld returns a Held that allows each caller at most most places.
func NewHeld(most int) *Held { return &Held{most: most, held: map[string]int{}} }

// Take takes a place for a caller. ok is false if the caller is at its limit. leave releases the place and must be called
// once.
func (h *Held) Take(caller string) (leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[caller] >= h.most {
		return nil, false
	}
	h.held[caller]++
	return func() { h.leave(caller) }, true
}

func (h *Held) leave(caller string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[caller]--; h.held[caller] == 0 {
		delete(h.held, caller)
	}
}
