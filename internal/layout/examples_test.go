package layout

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// withoutExample are importable packages that have no example, with the reason.
var withoutExample = map[string]string{
	"processors/pools":        "the example is in the generator, which programs extend",
	"processors/pools/layout": "internal to the group and the generator",
}

// onlyCompiled are packages whose examples cannot run in `go test`, with the reason.
var onlyCompiled = map[string]string{
	"processors/rows": "a group needs a broker; tests use package proctest",
}

// Each importable package has an example, and `go test` compares its output.
func TestExamples_CoverImportablePackages(t *testing.T) {
	atRoot(t)
	outputs := 0
	for path, examples := range examplesOf(t) {
		checked := 0
		for _, e := range examples {
			if e.Output != "" || e.EmptyOutput {
				checked++
			}
		}
		_, exempt := withoutExample[path]
		_, unchecked := onlyCompiled[path]
		switch {
		case exempt && len(examples) > 0:
			t.Errorf("%s has an example: remove it from withoutExample", path)
		case unchecked && checked > 0:
			t.Errorf("%s has an example with output: remove it from onlyCompiled", path)
		case !exempt && len(examples) == 0:
			t.Errorf("%s has no example: add one to its example_test.go", path)
		case !exempt && !unchecked && checked == 0:
			t.Errorf("%s has no example with an // Output: comment", path)
		}
		outputs += checked
	}
	expect.AtLeast(t, outputs, 30, "examples with output")
}

// examplesOf maps each importable package to its examples. It reports exempt packages that do not exist.
func examplesOf(t *testing.T) map[string][]*doc.Example {
	t.Helper()
	all := map[string][]*doc.Example{}
	for _, p := range packages(t) {
		path := p.path()
		if p.Name == "main" || len(p.GoFiles) == 0 || strings.HasPrefix(path, "internal/") {
			continue
		}
		all[path] = examplesIn(t, p.Dir, append(p.TestGoFiles, p.XTestGoFiles...))
	}
	for _, list := range []map[string]string{withoutExample, onlyCompiled} {
		for path := range list {
			if _, exists := all[path]; !exists {
				t.Errorf("exempt package %s does not exist", path)
			}
		}
	}
	return all
}

// examplesIn returns the examples in files of a directory.
func examplesIn(t *testing.T, dir string, names []string) []*doc.Example {
	t.Helper()
	var files []*ast.File
	for _, name := range names {
		file := must.Get(parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments))(t)
		files = append(files, file)
	}
	return doc.Examples(files...)
}
