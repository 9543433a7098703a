package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

const asProgram = "EMBEDDED_TEST_AS_PROGRAM" // if this variable is set, the test binary runs main

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// checkTempDir sets TMPDIR to a directory that must be empty at the end of the test.
func checkTempDir(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		expect.Equal(t, len(must.Get(os.ReadDir(dir))(t)), 0, "remaining temporary files")
	})
}

func TestRun_AppliesSourceScoreAndRule(t *testing.T) {
	checkTempDir(t)
	var out strings.Builder
	must.OK(t, run(t.Context(), &out))
	got := out.String()
	for _, want := range []string{"pin:tea from following\n", "pin:boat from following\n", "pin:chosen from editors\n", "pin:rejected is waiting because of own_rule\n"} {
		expect.Contains(t, got, want, "output")
	}
	if strings.Index(got, "pin:tea") > strings.Index(got, "pin:boat") {
		t.Errorf("the score has no effect:\n%s", got)
	}
	if strings.Contains(got, "pin:rejected from") {
		t.Errorf("the rule has no effect:\n%s", got)
	}
}

func TestRun_RemovesFilesWhenInterrupted(t *testing.T) {
	checkTempDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Is(t, run(ctx, &strings.Builder{}), context.Canceled, "run")
}

func TestMain_ExitsWith1OnError(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+filepath.Join(t.TempDir(), "none"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.HasPrefix(string(out), "embedded: ") {
		t.Errorf("got %v with output %q, want exit code 1", err, out)
	}
}
