// Package eventually is for tests that wait for something to become true.
package eventually

import (
	"os"
	"testing"
	"time"
)

// Patience is how long a test waits for what must come: a busy machine is slow, and not wrong.
const Patience = 2 * time.Minute

// PatienceVariable names the environment variable with another Patience for True. Runs in which tests are to fail, such as
// `make mutants`, set a short one.
const PatienceVariable = "SMARTFEED_TEST_PATIENCE"

// Limit returns how long True waits: Patience, or what PatienceVariable says.
func Limit() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(PatienceVariable)); err == nil {
		return d
	}
	return Patience
}

// slowest is the longest time between two looks: a condition may be a question to a server.
const slowest = 5 * time.Millisecond

// True looks at a condition until it holds, after a millisecond first and then more and more rarely, and ends the test
// when it does not within Patience, or when the test has failed already. what says what was waited for. It is to be called by the
// test's own goroutine.
func True(t testing.TB, what string, holds func() bool) {
	t.Helper()
	limit := Limit()
	deadline := time.Now().Add(limit)
	for pause := time.Millisecond; !holds(); pause = min(2*pause, slowest) {
		if t.Failed() {
			t.Fatalf("the test has failed already, so it does not wait: %s", what)
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
		time.Sleep(pause)
	}
}
