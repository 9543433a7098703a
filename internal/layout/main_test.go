// Package layout tests the source code as a whole: which packages import which, that the documents name what exists, and
// conventions that no compiler checks. It has only tests.
package layout

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
