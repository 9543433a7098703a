package client

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// A program that imports the client inherits no dependency: not of the server, and not of a third party.
func TestClient_ImportsOnlyStandardLibrary(t *testing.T) {
	out := must.Get(exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output())(t)
	if got := strings.Fields(string(out)); len(got) != 1 || !strings.HasSuffix(got[0], "/serving/client") {
		t.Errorf("got the packages %q, want only this one", got)
	}
}
