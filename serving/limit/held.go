package limit

import "sync"

// Held bounds how many places each caller holds at once. It is safe for concurrent use. It remembers those alone who hold
// some, so what bounds the places bounds it.
type Held struct {
	most int

	mu   sync.Mutex
	held map[string]int
}

// NewHeld gives each caller at most so many places.
func NewHeld(most int) *Held { return &Held{most: most, held: map[string]int{}} }

// Take takes a place for a caller, until leave, which is called once. False: the caller holds as many as one may.
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
