// Package test contains tests with additional dependencies: the console and the examples in a real browser, the container
// files with Docker's parser, and the alerts with Prometheus's engine. It is a separate module, so the program does not depend
// on them.
package test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
