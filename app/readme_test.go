package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// step is a command in a document, with the documented output.
type step struct {
	command string
	want    []string // lines; … matches any text
}

// consoleSteps reads the console blocks of a document. A line that starts with "$ " is a command, lines that start with
// "> " continue it, and the lines after it are its output.
func consoleSteps(t *testing.T, file string) []step {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	var steps []step
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSuffix(line, "\n")
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				steps = append(steps, step{command: command})
				continue
			}
			last := &steps[len(steps)-1]
			if more, ok := strings.CutPrefix(line, "> "); ok {
				last.command += "\n" + more
			} else {
				last.want = append(last.want, line)
			}
		}
	}
	return steps
}

// TestReadme_PrintsDocumentedOutput runs every console command of the README, and then of docs/how-to, against the demo product, on its own ports.
func TestReadme_PrintsDocumentedOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: not with -short")
	}
	t.Parallel()
	needTools(t, "bash", "curl")
	steps := consoleSteps(t, "../README.md")
	must.AtLeast(t, len(steps), 10, "commands in README.md")
	guides := must.Get(filepath.Glob("../docs/how-to/*.md"))(t)
	for _, file := range guides {
		steps = append(steps, consoleSteps(t, file)...)
	}
	must.AtLeast(t, len(steps), 16, "commands in README.md and %d guides", len(guides))
	c := newChild(t, t.TempDir())
	c.args = append(c.args, "--demo")
	c.start()
	c.until("loaded", func() bool { return c.records() > 10_000 })
	must.Get(runCommand(t.Context(), append([]string{"wait", "--timeout", processingTimeout}, c.flags...)...))(t)
	for _, s := range steps {
		s.check(t, c)
	}
}

func (s step) check(t *testing.T, c *child) {
	t.Helper()
	address := strings.TrimPrefix(c.http, "http://")
	command := strings.ReplaceAll(s.command, "127.0.0.1:8080", address)
	command = strings.ReplaceAll(command, "bin/smartfeed", filepath.Clean(os.Args[0]))
	cmd := exec.Command("bash", "-ec", command)
	cmd.Env = append(os.Environ(), childVariable+"=1", "SMARTFEED_HTTP="+address,
		"SMARTFEED_KAFKA="+c.flags[1], "SMARTFEED_REGISTRY="+c.flags[3])
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%.2000s", s.command, err, out)
		return
	}
	s.compare(t, string(out))
	t.Logf("%s: %s", s.command, time.Since(began).Round(time.Millisecond))
}

// compare reports documented lines that are not in the output.
func (s step) compare(t *testing.T, printed string) {
	t.Helper()
	for _, want := range s.want {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
		if !regexp.MustCompile("(?m)^" + pattern + "$").MatchString(printed) {
			t.Errorf("%s printed\n%.2000s\nwithout the documented line\n%s", s.command, printed, want)
		}
	}
}

// needTools skips the test if a program that the documented commands use is missing.
func needTools(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the commands need %s, which is not installed", tool)
		}
	}
}
