// Package deploy tests the files of a release with the libraries of the tools that read them: the Helm chart, decoded into the
// types of the Kubernetes API, .goreleaser.yaml, and the GitHub workflows. It is a separate module, because these libraries take more
// than a minute of CPU time to compile.
package deploy

import (
	"fmt"
	"io"
	"log"
	"os"
	"testing"
)

// TestMain runs the tests in the root of the repository.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // Helm logs each symbolic link of a chart
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
