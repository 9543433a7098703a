package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stepMark ends the output of one command of a session.
const stepMark = "\x01 end of step "

// TestTutorial runs the tutorial in one shell, as written except for the ports, and compares the output of each
// command.
func TestTutorial(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: not with -short")
	}
	t.Parallel()
	needTools(t, "bash", "curl", "go", "sed", "grep")
	steps := consoleSteps(t, "../docs/tutorial.md")
	if len(steps) < 30 {
		t.Fatalf("%d commands found", len(steps))
	}
	web, source := freeAddress(t), freeAddress(t)
	ours := strings.NewReplacer("bin/smartfeed", filepath.Clean(os.Args[0]), "127.0.0.1:8080", web, "127.0.0.1:9700", source)
	var script strings.Builder
	script.WriteString("set -eo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
	for i, s := range steps {
		fmt.Fprintf(&script, "%s\necho '%s%d'\n", ours.Replace(s.command), stepMark, i)
	}
	printed, err := typed(t, script.String(), "SMARTFEED_HTTP="+web, "SMARTFEED_KAFKA="+freeAddress(t), "SMARTFEED_REGISTRY="+freeAddress(t))
	for i, s := range steps {
		out, rest, done := strings.Cut(printed, fmt.Sprintf("%s%d\n", stepMark, i))
		if !done {
			t.Fatalf("%s: %v\n%.4000s", s.command, err, printed)
		}
		t.Logf("$ %s\n%s", s.command, out)
		s.compare(t, out)
		printed = rest
	}
	if err != nil {
		t.Errorf("the session ended with %v\n%s", err, printed)
	}
}

// typed runs a script in a shell, in the project's directory, and returns its output. Processes that it started end
// with it.
func typed(t *testing.T, script string, environ ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = ".."
	cmd.Env = append(append(os.Environ(), childVariable+"=1", "TMPDIR="+t.TempDir()), environ...)
	for _, wait := range []string{"FEED_GENERATOR_TIMEOUT", "FEED_STORE_TIMEOUT", "FEED_CATCH_UP_TIMEOUT", "FEED_SERVED_TIMEOUT", "FEATURE_DEADLINE"} {
		cmd.Env = append(cmd.Env, "SMARTFEED_"+wait+"="+patience.String())
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if killed := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); killed != nil && !errors.Is(killed, syscall.ESRCH) {
		t.Errorf("end what the session started: %v", killed)
	}
	return out.String(), err
}
