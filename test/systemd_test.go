package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// The settings of the systemd unit must be known to systemd, its command and environment to smartfeed, and a stopping process must get
// more time than it needs.
func TestSystemd_UnitRunsRoles(t *testing.T) {
	unit := settings(t, "deploy/systemd/smartfeed@.service")
	for _, role := range []app.Role{app.Process, app.Materialize, app.Serve} {
		expand := strings.NewReplacer("%i", string(role), "/etc/smartfeed/smartfeed.yaml", writeConfig(t), "/var/lib", t.TempDir())
		var environ []string
		for _, line := range unit["Environment"] {
			environ = append(environ, strings.Fields(expand.Replace(line))...)
		}
		program, command, _ := strings.Cut(expand.Replace(unit["ExecStart"][0]), " ")
		expect.Equal(t, program, "/usr/local/bin/smartfeed", "program of the unit of %s", role)
		expect.Equal(t, command, string(role), "command of the unit of %s", role)
		run(t, "the unit", environ, "config", "check", command)
	}
	if limit := must.Get(time.ParseDuration(unit["TimeoutStopSec"][0] + "s"))(t); limit <= app.ShutdownTimeout {
		t.Errorf("TimeoutStopSec is %s, want more than %s", limit, app.ShutdownTimeout)
	}
	expect.Contains(t, readText(t, "deploy/systemd/smartfeed.conf"), "\nu "+unit["User"][0]+" ", "smartfeed.conf")
	verifyUnit(t)
}

// settings returns the values of a systemd unit by key.
func settings(t *testing.T, file string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for line := range strings.Lines(readText(t, file)) {
		if key, value, is := strings.Cut(strings.TrimSpace(line), "="); is && !strings.HasPrefix(line, "#") {
			found[key] = append(found[key], value)
		}
	}
	return found
}

// writeConfig writes the smartfeed.yaml of an installation on loopback, and returns its path.
func writeConfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "smartfeed.yaml")
	must.OK(t, os.WriteFile(file, []byte("feed_store: {cassandra: {primary: {hosts: [cassandra]}}}"), 0o600))
	return file
}

// verifyUnit checks the unit with systemd, if it is installed, with a program and a user that exist on every machine.
func verifyUnit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		return
	}
	existing := regexp.MustCompile(`(?m)^(User|Group)=.*$`).ReplaceAllString(readText(t, "deploy/systemd/smartfeed@.service"), "$1=root")
	file := filepath.Join(t.TempDir(), "smartfeed@.service")
	must.OK(t, os.WriteFile(file, []byte(strings.ReplaceAll(existing, "/usr/local/bin/smartfeed", "/bin/true")), 0o600))
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze: %v: %s", err, out)
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(file))(t))
}
