package feature

import (
	"sync"
	"time"
)

// breaker leaves a store alone that does not answer: whoever asks for features is told at once that there are none,
// instead of waiting for the deadline each time, and the store has time to recover. It opens after Config.BreakAfter
// answers in a row that lacked values because of the store. Config.BreakFor later one answer tries: it closes the
// breaker, or opens it again.
type breaker struct {
	after int
	pause time.Duration
	now   func() time.Time

	mu      sync.Mutex
	failed  int       // in a row
	until   time.Time // while it is open
	probing bool      // an answer tries
}

func newBreaker(cfg Config, now func() time.Time) *breaker {
	return &breaker{after: cfg.BreakAfter, pause: cfg.BreakFor, now: now}
}

// outcome is how it went with the store.
type outcome int

const (
	went    outcome = iota
	broke           // values are missing because of it
	unknown         // whoever asked did not wait for it
)

// allow says whether the store may be asked. Whoever may tells with done how it went.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed < b.after {
		return true
	}
	if b.probing || b.now().Before(b.until) {
		return false
	}
	b.probing = true
	return true
}

func (b *breaker) done(o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	switch o {
	case went:
		b.failed = 0
	case broke:
		b.failed++
		b.until = b.now().Add(b.pause)
	}
}

// resting says whether the store is left alone for now, and nobody may try.
func (b *breaker) resting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed >= b.after && b.now().Before(b.until)
}

// open says whether the store is left alone, or has yet to answer after that.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed >= b.after
}
