package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// stepMark ends the output of one command of a session.
const stepMark = "\x01 end of step "

// tutorials returns the files of the tutorials.
func tutorials(t *testing.T) []string {
	t.Helper()
	files := must.Get(filepath.Glob("../docs/tutorials/*.md"))(t)
	must.AtLeast(t, len(files), 4, "tutorials, %q", files)
	return files
}

// TestTutorials_PrintDocumentedOutput runs each tutorial in a new shell, with other ports, and compares the output of each
// command.
func TestTutorials_PrintDocumentedOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: not with -short")
	}
	needTools(t, "bash", "curl", "go", "sed", "grep")
	for _, file := range tutorials(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
			t.Parallel()
			if filepath.Base(file) == "train-and-serve.md" {
				t.Skip("needs packages of Python: TestExample_TrainingLoop runs its loop")
			}
			runTutorial(t, file)
		})
	}
}

func runTutorial(t *testing.T, file string) {
	t.Helper()
	steps := consoleSteps(t, file)
	must.AtLeast(t, len(steps), 10, "commands")
	web, source := testchild.FreeAddress(t), testchild.FreeAddress(t)
	ours := strings.NewReplacer("bin/smartfeed", filepath.Clean(os.Args[0]), "127.0.0.1:8080", web, "127.0.0.1:9700", source)
	var script strings.Builder
	script.WriteString("set -eo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
	for i, s := range steps {
		fmt.Fprintf(&script, "%s\necho '%s%d'\n", ours.Replace(s.command), stepMark, i)
	}
	broker, registry := testchild.FreeAddress(t), testchild.FreeAddress(t)
	printed, err := typed(t, script.String(), "SMARTFEED_HTTP="+web, "SMARTFEED_KAFKA="+broker, "SMARTFEED_REGISTRY="+registry)
	for i, s := range steps {
		out, rest, done := strings.Cut(printed, fmt.Sprintf("%s%d\n", stepMark, i))
		if !done {
			t.Fatalf("%s: %v\n%.4000s", s.command, err, printed)
		}
		t.Logf("$ %s\n%s", s.command, out)
		s.compare(t, out)
		printed = rest
	}
	expect.Error(t, err, "", "end of the session, after %s", printed)
}

// The Go code in the tutorials must be code of the examples.
func TestTutorials_ShowCodeOfExamples(t *testing.T) {
	var code strings.Builder
	examples := must.Get(filepath.Glob("../examples/*/main.go"))(t)
	for _, file := range examples {
		text := must.Get(os.ReadFile(file))(t)
		code.Write(text)
	}
	blocks := 0
	for _, file := range tutorials(t) {
		text := must.Get(os.ReadFile(file))(t)
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			blocks++
			expect.Contains(t, code.String(), block[1], "the examples, with the code of %s", file)
		}
	}
	expect.AtLeast(t, blocks, 3, "blocks of Go")
}

// typed runs a script in a shell, in the project's directory, and returns its output. It stops the processes that the
// script has started.
func typed(t *testing.T, script string, environ ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = ".."
	cmd.Env = append(append(os.Environ(), childVariable+"=1", "TMPDIR="+t.TempDir()), environ...)
	for _, wait := range []string{"FEED_GENERATOR_TIMEOUT", "FEED_READ_TIMEOUT", "FEED_CATCH_UP_TIMEOUT", "FEED_ACK_TIMEOUT", "FEATURE_TIMEOUT"} {
		cmd.Env = append(cmd.Env, "SMARTFEED_"+wait+"="+patience.String())
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if killed := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); killed != nil && !errors.Is(killed, syscall.ESRCH) {
		t.Errorf("stop the processes of the session: %v", killed)
	}
	return out.String(), err
}
