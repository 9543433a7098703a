package feature

import (
	"sync"
	"time"
)

// breaker is the circuit breaker of the store. While it is open, answers fail at once instead of at their deadline, and
// the store can recover. It opens after Config.BreakAfter consecutive answers that lack values because of the store.
// After Config.BreakFor one answer probes the store: it closes the breaker, or opens it again.
type breaker struct {
	after int
	pause time.Duration
	now   func() time.Time

	mu      sync.Mutex
	failed  int       // consecutive failures
	until   time.Time // end of the open period
	probing bool      // an answer is probing the store
}

func newBreaker(cfg Config, now func() time.Time) *breaker {
	return &breaker{after: cfg.BreakAfter, pause: cfg.BreakFor, now: now}
}

// outcome is the result of reading from the store.
type outcome int

const (
	went    outcome = iota
	broke           // values are missing because of the store
	unknown         // the caller canceled before the store answered
)

// allow reports whether the store may be read. If it returns true, the caller must call done with the outcome.
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

// resting reports whether the breaker is open and it is too early for a probe.
func (b *breaker) resting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed >= b.after && b.now().Before(b.until)
}

// open reports whether the breaker is open or half-open.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed >= b.after
}
