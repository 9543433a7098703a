package product

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// step is a command of the README with what it shows that the command prints.
type step struct {
	command string
	want    []string // lines; … stands for anything
}

// readmeSteps reads the console blocks: a line that starts with "$ " is a command, those after it are what it prints.
func readmeSteps(t *testing.T) []step {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSuffix(line, "\n")
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				steps = append(steps, step{command: command})
			} else {
				steps[len(steps)-1].want = append(steps[len(steps)-1].want, line)
			}
		}
	}
	return steps
}

// TestReadme types every command of the README as it stands, against the demo product, on ports of its own.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: not with -short")
	}
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the README's commands need %s, which is not on this machine", tool)
		}
	}
	steps := readmeSteps(t)
	if len(steps) < 5 {
		t.Fatalf("%d commands found", len(steps))
	}
	c := newChild(t, t.TempDir())
	c.args = append(c.args, "--demo")
	c.start()
	c.until("loaded", func() bool { return c.records() > 10_000 })
	if _, err := runCommand(t.Context(), append([]string{"wait", "--timeout", "60s"}, c.flags...)...); err != nil {
		t.Fatal(err)
	}
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
	for _, want := range s.want {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
		if !regexp.MustCompile("(?m)^" + pattern + "$").Match(out) {
			t.Errorf("%s printed\n%.2000s\nwhich has no line like\n%s", s.command, out, want)
		}
	}
	t.Logf("%s: %s", s.command, time.Since(began).Round(time.Millisecond))
}
