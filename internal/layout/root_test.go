// Package layout tests rules for the whole source code: allowed imports, names in documents, and conventions that the
// compiler does not check. It has only tests.
package layout

import "testing"

// atRoot runs a test in the root of the repository. It changes the directory inside the test: otherwise the cache of
// `go test` ignores changes of the files that the test reads.
func atRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}
