package cassandratest

import (
	"os"
	"strconv"
	"testing"
)

// Count returns how many reads a test makes in each state of the stores: the value of an environment variable, at least 400,
// or 2,000 if it is not set.
func Count(t *testing.T, variable string) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 2000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 400 {
		t.Fatalf("%s=%s: want a number from 400", variable, text)
	}
	return n
}
