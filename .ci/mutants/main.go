// Mutants disables the protections of the program one at a time, and requires that the tests of each then fail.
//
//	go run ./.ci/mutants [-only REGEXP] [-list FILE] [-n] [-v]
//
// mutants.txt lists them and describes its format. A mutant passes if its text occurs exactly once in its file, the changed
// program compiles, and the tests fail within their time limit, which excludes compilation. It fails if the tests pass or time
// out. The compiler gets the changed file as an overlay, so the tree is not modified. With -n, the command checks only the
// list: each text occurs once, and each test exists. The exit code is 1 unless all mutants pass.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
)

func main() {
	only := flag.String("only", "", "run the mutants whose names match")
	list := flag.String("list", ".ci/mutants/mutants.txt", "file of mutants")
	dry := flag.Bool("n", false, "check the list and run nothing")
	verbose := flag.Bool("v", false, "print the output of the tests")
	flag.Parse()
	if err := run(*list, *only, *dry, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(list, only string, dry, verbose bool) (err error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	mutants, err := parse(string(text))
	if err != nil {
		return err
	}
	pick, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l := runner{dir: dir, healthy: map[string]error{}}
	try := l.try
	if dry {
		try = l.check
	}
	passed, failed := 0, 0
	for _, m := range mutants {
		if !pick.MatchString(m.name) {
			continue
		}
		output, err := try(m)
		verdict := "ok  "
		if passed++; err != nil {
			verdict, passed, failed = "FAIL", passed-1, failed+1
		}
		if !dry || err != nil {
			fmt.Printf("%s  %5.1fs  %s\n", verdict, m.took.Seconds(), m.name)
		}
		if err != nil {
			fmt.Printf("      %s: %v\n", m.at, err)
		}
		if verbose || err != nil && output != "" {
			fmt.Print(indent(output))
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		return errors.New("want all mutants to pass, and at least one")
	}
	return nil
}

// indent returns the last lines of a text, indented.
func indent(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-20):]
	return "      | " + strings.Join(lines, "\n      | ") + "\n"
}

// mutant is one change, with the tests that must detect it.
type mutant struct {
	name          string
	at            string // its line in the list
	file          string
	pkg, tests    string
	within        time.Duration
	before, after []string      // lines; the text before occurs once in the file
	took          time.Duration // the last run of the tests, without compilation
}

// runner compiles and runs tests.
type runner struct {
	dir     string
	healthy map[string]error // results of the unchanged tree, by package and tests
}

// try returns the output of the tests. The error is nil if they failed, as required.
func (l *runner) try(m *mutant) (string, error) {
	overlay, err := l.overlay(m)
	if err != nil {
		return "", err
	}
	if err := l.checkHealthy(m); err != nil {
		return "", err
	}
	binary := filepath.Join(l.dir, "mutant.test")
	if output, err := compile(m.pkg, binary, "-overlay", overlay); err != nil {
		return output, fmt.Errorf("the mutant does not compile: %w", err)
	}
	output, err := test(binary, m)
	switch {
	case err == nil:
		return output, fmt.Errorf("%s in %s passed with the mutant", m.tests, m.pkg)
	case strings.Contains(output, "panic: test timed out"):
		return "", fmt.Errorf("%s in %s timed out after %s", m.tests, m.pkg, m.within)
	}
	return output, nil
}

// check returns an error unless the text of m occurs once and its tests exist.
func (l *runner) check(m *mutant) (string, error) {
	if _, err := l.overlay(m); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(m.pkg, "*_test.go"))
	if err != nil {
		return "", err
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		for _, found := range testName.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	for pattern := range strings.SplitSeq(m.tests, "|") {
		name, _, _ := strings.Cut(pattern, "/")
		tests, err := regexp.Compile(name)
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(names, tests.MatchString) {
			return "", fmt.Errorf("%s has no test %s", m.pkg, pattern)
		}
	}
	return "", nil
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// overlay writes the changed file, and the overlay file for the compiler.
func (l *runner) overlay(m *mutant) (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	before, after := strings.Join(m.before, "\n"), strings.Join(m.after, "\n")
	if n := strings.Count(string(text), before); n != 1 {
		return "", fmt.Errorf("%s contains the text %d times, want once: %q", m.file, n, before)
	}
	changed, overlay := filepath.Join(l.dir, "changed.go"), filepath.Join(l.dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), before, after, 1)), 0o600); err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, m.file, changed), 0o600)
}

// checkHealthy requires that the tests exist and pass in the unchanged tree. Otherwise their failure proves nothing.
func (l *runner) checkHealthy(m *mutant) error {
	key := m.pkg + " " + m.tests
	if err, known := l.healthy[key]; known {
		return err
	}
	binary, output := filepath.Join(l.dir, strings.ReplaceAll(m.pkg, "/", "-")), ""
	_, err := os.Stat(binary)
	if err != nil {
		output, err = compile(m.pkg, binary)
	}
	if err == nil {
		output, err = test(binary, m)
	}
	switch {
	case err != nil:
		err = fmt.Errorf("%s in %s fails without the mutant: %w\n%s", m.tests, m.pkg, err, indent(output))
	case !strings.Contains(output, "--- PASS"):
		err = fmt.Errorf("no test of %s matches %s, or all are skipped", m.pkg, m.tests)
	}
	l.healthy[key] = err
	return err
}

func compile(pkg, binary string, args ...string) (output string, err error) {
	args = append([]string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", binary}, args...)
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Env = append(os.Environ(), "GOGC=off", "GOMEMLIMIT=1GiB") // a quarter less time, see the Makefile
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// test runs the tests in the directory of their package, as go test does.
func test(binary string, m *mutant) (string, error) {
	cmd := exec.Command(binary, "-test.run", m.tests, "-test.v", "-test.failfast", "-test.timeout", m.within.String())
	cmd.Dir = m.pkg
	cmd.Env = append(os.Environ(), eventually.PatienceVariable+"="+(m.within/2).String())
	started := time.Now()
	output, err := cmd.CombinedOutput()
	m.took = time.Since(started)
	return string(output), err
}
