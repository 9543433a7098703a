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
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	ok, err := run(*list, *only, *dry, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(list, only string, dry, verbose bool) (ok bool, err error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return false, err
	}
	mutants, err := parse(string(text))
	if err != nil {
		return false, err
	}
	pick, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l := runner{dir: dir, binaries: map[string]string{}, healthy: map[string]error{}}
	try := l.try
	if dry {
		try = l.check
	}
	passed, failed := 0, 0
	for _, m := range mutants {
		if !pick.MatchString(m.name) {
			continue
		}
		took, output, err := try(m)
		verdict := "ok  "
		if passed++; err != nil {
			verdict, passed, failed = "FAIL", passed-1, failed+1
		}
		if !dry || err != nil {
			fmt.Printf("%s  %5.1fs  %s\n", verdict, took.Seconds(), m.name)
		}
		if err != nil {
			fmt.Printf("      %s: %v\n", m.at, err)
		}
		if verbose || err != nil && output != "" {
			fmt.Print(indent(output))
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	return failed == 0 && passed > 0, nil
}

// indent returns the last lines of a text, indented.
func indent(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-20):]
	return "      | " + strings.Join(lines, "\n      | ") + "\n"
}

// mutant is one change, with the tests that must detect it.
type mutant struct {
	name       string
	at         string // its line in the list
	file       string
	pkg, tests string
	within     time.Duration
	before     string // occurs once in the file
	after      string
}

// runner compiles and runs tests.
type runner struct {
	dir      string
	binaries map[string]string // tests of the unchanged tree, by package
	healthy  map[string]error  // their results, by package and tests
}

// try returns the duration and the output of the tests. The error is nil if they failed, as required.
func (l *runner) try(m mutant) (time.Duration, string, error) {
	overlay, err := l.overlay(m)
	if err != nil {
		return 0, "", err
	}
	if err := l.checkHealthy(m); err != nil {
		return 0, "", err
	}
	binary := filepath.Join(l.dir, "mutant.test")
	if output, err := compile(m.pkg, binary, "-overlay", overlay); err != nil {
		return 0, output, fmt.Errorf("the mutant does not compile: %w", err)
	}
	took, output, err := test(binary, m)
	switch {
	case err == nil:
		return took, output, fmt.Errorf("%s in %s passed with the mutant", m.tests, m.pkg)
	case strings.Contains(output, "panic: test timed out"):
		return took, "", fmt.Errorf("%s in %s timed out after %s", m.tests, m.pkg, m.within)
	}
	return took, output, nil
}

// check returns an error unless the text of m occurs once and its tests exist.
func (l *runner) check(m mutant) (time.Duration, string, error) {
	if _, err := l.overlay(m); err != nil {
		return 0, "", err
	}
	files, err := filepath.Glob(filepath.Join(m.pkg, "*_test.go"))
	if err != nil {
		return 0, "", err
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, "", err
		}
		for _, found := range testName.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	for pattern := range strings.SplitSeq(m.tests, "|") {
		tests, err := regexp.Compile(strings.Trim(strings.Split(pattern, "/")[0], "()"))
		if err != nil {
			return 0, "", err
		}
		if !slices.ContainsFunc(names, tests.MatchString) {
			return 0, "", fmt.Errorf("%s has no test %s", m.pkg, pattern)
		}
	}
	return 0, "", nil
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// overlay writes the changed file, and the overlay file for the compiler.
func (l *runner) overlay(m mutant) (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.before); n != 1 {
		return "", fmt.Errorf("%s contains the text %d times, want once: %q", m.file, n, m.before)
	}
	changed := filepath.Join(l.dir, "changed.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), m.before, m.after, 1)), 0o600); err != nil {
		return "", err
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(l.dir, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}

// checkHealthy requires that the tests exist and pass in the unchanged tree. Otherwise their failure proves nothing.
func (l *runner) checkHealthy(m mutant) error {
	key := m.pkg + " " + m.tests
	if err, known := l.healthy[key]; known {
		return err
	}
	binary, output := l.binaries[m.pkg], ""
	var err error
	if binary == "" {
		binary = filepath.Join(l.dir, strconv.Itoa(len(l.binaries))+".test")
		l.binaries[m.pkg] = binary
		output, err = compile(m.pkg, binary)
	}
	if err == nil {
		_, output, err = test(binary, m)
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
func test(binary string, m mutant) (time.Duration, string, error) {
	var output bytes.Buffer
	cmd := exec.Command(binary, "-test.run", m.tests, "-test.v", "-test.failfast", "-test.timeout", m.within.String())
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.pkg, &output, &output
	cmd.Env = append(os.Environ(), eventually.PatienceVariable+"="+(m.within/2).String())
	started := time.Now()
	err := cmd.Run()
	return time.Since(started), output.String(), err
}
