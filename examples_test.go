package main

import (
	"encoding/json"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// withoutExample are packages that other programs may import and that show nothing by an example, and why.
var withoutExample = map[string]string{
	"serving/feedstore/cassandra/cassandratest": "helps tests, and needs a server",
	"serving/feature/conformance":               "is the suite that stores are held to: their tests show how it is run",
	"serving/feedstore/conformance":             "is the suite that stores are held to: their tests show how it is run",
}

// onlyCompiled are packages whose examples need what a plain `go test` has not got, so that nobody compares what they print.
var onlyCompiled = map[string]string{
	"processors/rows": "a group wants a broker; package proctest has one for tests",
}

// Whoever imports a package finds in its documentation what to type first, and that it does what it says there.
func TestPackagesHaveExamples(t *testing.T) {
	shown := 0
	for path, examples := range examplesOf(t) {
		checked := 0
		for _, e := range examples {
			if e.Output != "" || e.EmptyOutput {
				checked++
			}
		}
		_, excused := withoutExample[path]
		_, unchecked := onlyCompiled[path]
		switch {
		case excused && len(examples) > 0:
			t.Errorf("%s has an example and is excused from having one: take it off the list", path)
		case unchecked && checked > 0:
			t.Errorf("%s has an example with output and is excused from having one: take it off the list", path)
		case !excused && len(examples) == 0:
			t.Errorf("%s has no example: write one into its example_test.go", path)
		case !excused && !unchecked && checked == 0:
			t.Errorf("%s has no example whose output is compared: give one an // Output:", path)
		}
		shown += checked
	}
	if shown < 30 {
		t.Errorf("%d examples with output were found", shown)
	}
}

// examplesOf maps each package that other programs may import to its examples; those that are on a list and not there are
// mistakes.
func examplesOf(t *testing.T) map[string][]*doc.Example {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Dir,TestGoFiles,XTestGoFiles", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]*doc.Example{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct {
			ImportPath, Name, Dir     string
			TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatalf("go list: %v", err)
		}
		path := strings.TrimPrefix(p.ImportPath, module)
		if p.Name == "main" || strings.HasPrefix(path, "internal/") {
			continue
		}
		all[path] = examplesIn(t, p.Dir, append(p.TestGoFiles, p.XTestGoFiles...))
	}
	for _, list := range []map[string]string{withoutExample, onlyCompiled} {
		for path := range list {
			if _, there := all[path]; !there {
				t.Errorf("%s is excused and not there", path)
			}
		}
	}
	return all
}

// examplesIn are the examples of some files.
func examplesIn(t *testing.T, dir string, names []string) []*doc.Example {
	t.Helper()
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return doc.Examples(files...)
}
