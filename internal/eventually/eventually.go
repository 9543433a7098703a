// Package eventually is for tests that wait for something to become true.
package eventually

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what must come: a busy machine is slow, and not wrong.
const Patience = 2 * time.Minute

// slowest is the longest time between two looks: a condition may be a question to a server.
const slowest = 5 * time.Millisecond

// True looks at a condition until it holds, after a millisecond first and then more and more rarely, and ends the test
// when it does not within Patience. what says what was waited for. It is to be called by the test's own goroutine.
func True(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for pause := time.Millisecond; !holds(); pause = min(2*pause, slowest) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", Patience, what)
		}
		time.Sleep(pause)
	}
}
