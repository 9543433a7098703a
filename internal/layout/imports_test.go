package layout

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

const module = "github.com/smartfeed/smartfeed/"

// layers maps a folder to the folders that its packages may import.
var layers = map[string][]string{
	"schemas":    {"schemas"},
	"topics":     {"schemas", "topics"},
	"processors": {"schemas", "topics", "processors"},
	"serving":    {"schemas", "topics", "serving"},
}

// leaves are packages that every layer may import. They import no package of the module except internal/settings.
var leaves = []string{
	"internal/command", "internal/convert", "internal/durable", "internal/experiment", "internal/foreign", "internal/jsonbound", "internal/measure", "internal/metrics", "internal/packed", "internal/periodic", "internal/reload", "internal/secure", "internal/settings",
	"internal/stored", "internal/tensors", "internal/tracing",
}

// groups are the packages of processors that compute; none may import another.
var groups = []string{"objects", "actors", "fanout", "related", "pools", "materialize", "interests", "insights", "retries"}

func TestImports_RunOneWay(t *testing.T) {
	atRoot(t)
	seen := map[string]bool{}
	for path, all := range importsOf(t) {
		imports := own(all)
		layer, _, _ := strings.Cut(path, "/")
		if slices.Contains(leaves, path) {
			seen[path] = true
			for _, imp := range imports {
				expect.Equal(t, imp, "internal/settings", "the only import of the leaf %s", path)
			}
		}
		allowed, ruled := layers[layer]
		seen[layer] = true
		for _, imp := range imports {
			below, _, _ := strings.Cut(imp, "/")
			if below == "internal" {
				below = imp
			}
			if ruled && slices.Contains(leaves, imp) {
				continue
			}
			expect.False(t, ruled && !slices.Contains(allowed, below), "%s imports %s: %s may import only %v", path, imp, layer, allowed)
			if from, to := groupOf(path), groupOf(imp); from != "" && to != "" && from != to {
				t.Errorf("%s imports %s: a group must not import another", path, imp)
			}
		}
	}
	for _, layer := range slices.Concat(slices.Collect(maps.Keys(layers)), leaves) {
		expect.True(t, seen[layer], "a package of %s was checked", layer)
	}
}

// The package table of the architecture lists every package of internal, and marks exactly the leaves as leaves.
func TestArchitecture_ListsInternalPackages(t *testing.T) {
	atRoot(t)
	text := must.Get(os.ReadFile("docs/design/architecture.md"))(t)
	var mapped, mappedLeaves []string
	for _, row := range regexp.MustCompile("(?m)^\\| `internal`, ([a-z ]+) \\|(.*)$").FindAllStringSubmatch(string(text), -1) {
		for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[2], -1) {
			mapped = append(mapped, "internal/"+name[1])
			if row[1] == "leaves" {
				mappedLeaves = append(mappedLeaves, "internal/"+name[1])
			}
		}
	}
	folders := must.Get(filepath.Glob("internal/*"))(t)
	for _, want := range []struct {
		what        string
		want, found []string
	}{{"packages", folders, mapped}, {"leaves", leaves, mappedLeaves}} {
		slices.Sort(want.want)
		slices.Sort(want.found)
		expect.NoDiff(t, want.want, want.found, "%s in docs/design/architecture.md, found (-) and listed (+)", want.what)
	}
}

// Programs can embed every package except internal/cli without a dependency on cobra.
func TestImports_OnlyCLIImportsCobra(t *testing.T) {
	checkOnlyImporter(t, "github.com/spf13/cobra", "internal/cli")
}

// The client's gaps are closed in one package.
func TestImports_OnlyPinotImportsPinotClient(t *testing.T) {
	checkOnlyImporter(t, "github.com/startreedata/pinot-client-go/pinot", "serving/feature/pinot")
}

func checkOnlyImporter(t *testing.T, imported, importer string) {
	t.Helper()
	atRoot(t)
	found := false
	for path, imports := range importsOf(t) {
		if !slices.Contains(imports, imported) {
			continue
		}
		found = found || path == importer
		expect.Equal(t, path, importer, "importer of %s", imported)
	}
	expect.True(t, found, "%s imports %s: otherwise, this test checks nothing", importer, imported)
}

// docs/design/decisions.md must have a record for each direct dependency of both modules, and for no other module.
func TestDecisions_CoverDependencies(t *testing.T) {
	atRoot(t)
	text := must.Get(os.ReadFile("docs/design/decisions.md"))(t)
	var recorded, direct []string
	for _, heading := range regexp.MustCompile(`(?m)^### (\S*/.*)$`).FindAllStringSubmatch(string(text), -1) {
		for name := range strings.SplitSeq(heading[1], ", ") {
			recorded = append(recorded, path.Base(name))
		}
	}
	for _, file := range []string{"go.mod", "test/go.mod", "test/deploy/go.mod"} {
		text := must.Get(os.ReadFile(file))(t)
		for _, required := range regexp.MustCompile(`(?m)^(?:require )?\t?(\S+/\S+) v\S+$`).FindAllStringSubmatch(string(text), -1) {
			if required[1]+"/" != module {
				direct = append(direct, path.Base(regexp.MustCompile(`/v\d+$`).ReplaceAllString(required[1], "")))
			}
		}
	}
	slices.Sort(recorded)
	slices.Sort(direct)
	direct = slices.Compact(direct)
	expect.AtLeast(t, len(direct), 30, "direct dependencies")
	expect.NoDiff(t, recorded, direct, "modules of docs/design/decisions.md")
}

func groupOf(path string) string {
	for _, g := range groups {
		if path == "processors/"+g || strings.HasPrefix(path, "processors/"+g+"/") {
			return g
		}
	}
	return ""
}

// Every test that a document names must exist.
func TestDocuments_NameExistingTests(t *testing.T) {
	atRoot(t)
	have := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+|Benchmark\w+)\(`).FindAllSubmatch(text, -1) {
			have[string(m[1])] = true
		}
		return err
	})
	must.OK(t, err)
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found := must.Get(filepath.Glob(pattern))(t)
		documents = append(documents, found...)
	}
	named := 0
	for _, document := range documents {
		text := must.Get(os.ReadFile(document))(t)
		for _, name := range regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`").FindAllSubmatch(text, -1) {
			named++
			expect.True(t, have[string(name[1])], "%s names %s, which exists", document, name[1])
		}
	}
	expect.AtLeast(t, named, 20, "names of tests in %v", documents)
}

// own returns the imports of packages of this module, without the module's path.
func own(imports []string) (paths []string) {
	for _, imp := range imports {
		if path, ok := strings.CutPrefix(imp, module); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// importsOf maps each package of the module, without the module's path, to all packages it imports outside of tests.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, p := range packages(t) {
		all[p.path()] = p.Imports
	}
	return all
}

// listed is a package as `go list` prints it.
type listed struct {
	ImportPath, Name, Dir                       string
	GoFiles, Imports, TestGoFiles, XTestGoFiles []string
}

// path returns the import path without the module's path.
func (p listed) path() string { return strings.TrimPrefix(p.ImportPath, module) }

// packages lists the packages of the module.
func packages(t *testing.T) (all []listed) {
	t.Helper()
	out := must.Get(exec.Command("go", "list", "-json=ImportPath,Name,Dir,GoFiles,Imports,TestGoFiles,XTestGoFiles", "./...").Output())(t)
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listed
		must.OK(t, dec.Decode(&p))
		all = append(all, p)
	}
	return all
}
