package client

import (
	"os/exec"
	"strings"
	"testing"
)

// A program that imports the client inherits no dependency: not of the server, and not of a third party.
func TestClient_ImportsOnlyStandardLibrary(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if got := strings.Fields(string(out)); len(got) != 1 || !strings.HasSuffix(got[0], "/serving/client") {
		t.Errorf("got the packages %q, want only this one", got)
	}
}
