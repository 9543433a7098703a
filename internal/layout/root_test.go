// Package layout tests the source code as a whole: which packages import which, that the documents name what exists, and
// conventions that no compiler checks. It has only tests.
package layout

import "testing"

// atRoot runs a test in the root of the repository. It changes the directory within the test, so that the files that the test
// reads count for the cache of `go test`.
func atRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}
