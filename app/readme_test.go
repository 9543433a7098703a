package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/config"
)

// step is a command of a document with the output that the document shows.
type step struct {
	command string
	want    []string // lines; … stands for any text
}

// consoleSteps reads the console blocks of a document. A line that starts with "$ " is a command, lines that start with
// "> " continue it, and the lines after it are its output.
func consoleSteps(t *testing.T, file string) []step {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
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

// documents returns the paths of all documents: those at the root, except the changelog, and those in docs.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Errorf("no documents match %s", pattern)
		}
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(file string) bool { return filepath.Base(file) == "CHANGELOG.md" })
}

// TestReadme runs every console command of the README, and then of docs/how-to, against the demo product, on its own ports.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: not with -short")
	}
	t.Parallel()
	needTools(t, "bash", "curl")
	steps := consoleSteps(t, "../README.md")
	if len(steps) < 10 {
		t.Fatalf("%d commands found in README.md", len(steps))
	}
	guides, err := filepath.Glob("../docs/how-to/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range guides {
		steps = append(steps, consoleSteps(t, file)...)
	}
	if len(steps) < 16 {
		t.Fatalf("%d commands found in README.md and %d guides", len(steps), len(guides))
	}
	c := newChild(t, t.TempDir())
	c.args = append(c.args, "--demo")
	c.start()
	c.until("loaded", func() bool { return c.records() > 10_000 })
	if _, err := runCommand(t.Context(), append([]string{"wait", "--timeout", workedOff}, c.flags...)...); err != nil {
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
	s.compare(t, string(out))
	t.Logf("%s: %s", s.command, time.Since(began).Round(time.Millisecond))
}

// compare reports the lines of the document that are not in the output.
func (s step) compare(t *testing.T, printed string) {
	t.Helper()
	for _, want := range s.want {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
		if !regexp.MustCompile("(?m)^" + pattern + "$").MatchString(printed) {
			t.Errorf("%s printed\n%.2000s\nwhich has no line like\n%s", s.command, printed, want)
		}
	}
}

// needTools skips the test if a program is missing that a document's commands use.
func needTools(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the commands need %s, which is not on this machine", tool)
		}
	}
}

// The program accepts the commands and files in the documents.
func TestDocumentsAreUnderstood(t *testing.T) {
	commands, files := 0, 0
	for _, name := range documents(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)^ {4}((?:bin/)?smartfeed .*)$|`((?:bin/)?smartfeed [^`]*)`").FindAllSubmatch(text, -1) {
			line, _, _ := strings.Cut(strings.Join(strings.Fields(string(m[1])+string(m[2])), " "), " #")
			commands++
			if err := understood(line); err != nil {
				t.Errorf("%s: %q: %v", name, line, err)
			}
		}
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
			files++
			cfg, file := DefaultConfig(), filepath.Join(t.TempDir(), "smartfeed.yaml")
			if err := os.WriteFile(file, m[1], 0o600); err != nil {
				t.Fatal(err)
			}
			if err := config.Load(&cfg, config.Source{File: file}); err != nil {
				t.Errorf("%s: %v in\n%s", name, err, m[1])
			}
		}
	}
	if commands < 40 || files < 3 {
		t.Errorf("%d commands and %d files were found", commands, files)
	}
}

// TestDocuments_LinkToExistingFilesAndHeadings checks the relative links of all documents.
func TestDocuments_LinkToExistingFilesAndHeadings(t *testing.T) {
	links := 0
	for _, name := range documents(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllSubmatch(text, -1) {
			target, heading, _ := strings.Cut(string(m[1]), "#")
			if strings.Contains(target, "://") {
				continue
			}
			links++
			file := name
			if target != "" {
				file = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link to %s: %v", name, m[1], err)
				continue
			}
			if heading != "" && !slices.Contains(anchors(t, file), heading) {
				t.Errorf("%s: link to %s: %s has no such heading", name, m[1], file)
			}
		}
	}
	if links < 40 {
		t.Errorf("%d links found", links)
	}
}

// anchors returns the anchors of a document's headings, as GitHub makes them.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile("(?m)^#+ (.*)$").FindAllSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(string(m[1])), "")
		all = append(all, strings.ReplaceAll(anchor, " ", "-"))
	}
	return all
}
