package cassandratest

import (
	"os"
	"strconv"
	"testing"
)

// Count is how many reads a test makes of stores in each state: what an environment variable says, 400 at least, and 2,000
// without it.
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
