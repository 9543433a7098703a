package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

const asProgram = "EMBEDDED_TEST_AS_PROGRAM" // if it is set, the test binary is the program

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// temporary puts temporary files below a directory that must be empty at the end.
func temporary(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

func TestOwnSourceScoreAndRule(t *testing.T) {
	temporary(t)
	var out strings.Builder
	must.OK(t, run(t.Context(), &out))
	got := out.String()
	for _, want := range []string{"pin:tea from following\n", "pin:boat from following\n", "pin:chosen from editors\n", "pin:held is waiting because of own_rule\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Index(got, "pin:tea") > strings.Index(got, "pin:boat") {
		t.Errorf("the score does not count:\n%s", got)
	}
	if strings.Contains(got, "pin:held from") {
		t.Errorf("the rule does not count:\n%s", got)
	}
}

// A failed run cleans up, too.
func TestRunThatIsInterrupted(t *testing.T) {
	temporary(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, &strings.Builder{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was interrupted", err)
	}
}

// The exit code reflects an error.
func TestExitCode(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+filepath.Join(t.TempDir(), "none"))
	said, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 1 || !strings.HasPrefix(string(said), "embedded: ") {
		t.Errorf("%v, %s", err, said)
	}
}
