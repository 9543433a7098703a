// Package eventually lets tests wait until a condition holds.
package eventually

import (
	"errors"
	"os"
	"testing"
	"time"
)

// Patience is the default timeout. It is long, because a slow machine must not fail tests.
const Patience = Slowdown * 2 * time.Minute

// PatienceVariable is the environment variable that overrides Patience. Runs with tests that should fail, such as `make
// mutants`, set a short one.
const PatienceVariable = "SMARTFEED_TEST_PATIENCE"

// Limit returns the timeout of True and OK: Patience, or the value of PatienceVariable.
func Limit() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(PatienceVariable)); err == nil {
		return d
	}
	return Patience
}

// slowest is the maximum interval between two checks. A condition can be a request to a server, which busy polling would
// slow down.
const slowest = 5 * time.Millisecond

// True checks a condition until it holds, first after a millisecond and then at increasing intervals. It stops the test
// if the condition does not hold within Patience, or if the test has already failed. what describes the condition. Only
// the test's own goroutine can call True.
func True(t testing.TB, what string, holds func() bool) {
	t.Helper()
	OK(t, func() error {
		if holds() {
			return nil
		}
		return errors.New(what)
	})
}

// OK calls try until it returns nil, as True checks a condition. The message of a failed test has the last error.
func OK(t testing.TB, try func() error) {
	t.Helper()
	limit := Limit()
	deadline := time.Now().Add(limit)
	for pause := time.Millisecond; ; pause = min(2*pause, slowest) {
		err := try()
		if err == nil {
			return
		}
		if t.Failed() {
			t.Fatalf("the test has failed already, so it does not wait: %v", err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("timed out after %s: %v", limit, err)
		}
		time.Sleep(pause)
	}
}
