package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/smartfeed/smartfeed/"

// layers are the folders from the bottom up; a package may import its own layer and those below. processors and
// serving stand side by side.
var layers = map[string][]string{
	"schemas":    {"schemas"},
	"topics":     {"schemas", "topics"},
	"processors": {"schemas", "topics", "processors"},
	"serving":    {"schemas", "topics", "serving", "internal/ops"},
}

// leaves are packages that every layer may import, and that import none of the module.
var leaves = []string{
	"internal/bounds", "internal/command", "internal/foreign", "internal/jsonbound", "internal/packed", "internal/pause", "internal/secure",
	"internal/stored", "internal/tracing",
}

// groups are the packages of processors that compute; none may import another.
var groups = []string{"objects", "actors", "fanout", "related", "pools", "materialize", "interests", "retries"}

func TestImportsRunOneWay(t *testing.T) {
	seen := map[string]bool{}
	for path, imports := range packages(t) {
		layer, _, _ := strings.Cut(path, "/")
		if slices.Contains(leaves, path) {
			seen[path] = true
			if len(imports) > 0 {
				t.Errorf("%s imports %v: it may import nothing of the module", path, imports)
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
			if ruled && !slices.Contains(allowed, below) {
				t.Errorf("%s imports %s: %s may import %v only", path, imp, layer, allowed)
			}
			if from, to := groupOf(path), groupOf(imp); from != "" && to != "" && from != to {
				t.Errorf("%s imports %s: groups never import groups", path, imp)
			}
		}
	}
	for _, layer := range slices.Concat(slices.Collect(maps.Keys(layers)), leaves) {
		if !seen[layer] {
			t.Errorf("no package of %s was looked at", layer)
		}
	}
}

// The map has every package of internal, and the leaves are those that it says are leaves.
func TestTheMapHasEveryInternalPackage(t *testing.T) {
	text, err := os.ReadFile("docs/design/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var mapped, mappedLeaves []string
	for _, row := range regexp.MustCompile("(?m)^\\| `internal`, ([a-z ]+) \\|(.*)$").FindAllStringSubmatch(string(text), -1) {
		for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[2], -1) {
			mapped = append(mapped, "internal/"+name[1])
			if row[1] == "leaves" {
				mappedLeaves = append(mappedLeaves, "internal/"+name[1])
			}
		}
	}
	folders, err := filepath.Glob("internal/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		what        string
		want, found []string
	}{{"packages", folders, mapped}, {"leaves", leaves, mappedLeaves}} {
		slices.Sort(want.want)
		slices.Sort(want.found)
		if !slices.Equal(want.want, want.found) {
			t.Errorf("%s: docs/design/architecture.md has %v, there are %v", want.what, want.found, want.want)
		}
	}
}

// What flows and what computes has no commands: other programs have it in them without. Commands stand beside it.
func TestTopicsAndProcessorsHaveNoCommands(t *testing.T) {
	const commands = "github.com/spf13/cobra"
	looked, found := 0, 0
	for path, imports := range importsOf(t) {
		has := slices.Contains(imports, commands)
		if has {
			found++
		}
		if path != "topics" && path != "processors" && !strings.HasPrefix(path, "processors/") {
			continue
		}
		if looked++; has {
			t.Errorf("%s imports %s: it may have no commands", path, commands)
		}
	}
	if looked < len(groups)+2 || found == 0 {
		t.Errorf("%d packages were looked at, %d of all have commands", looked, found)
	}
}

func groupOf(path string) string {
	for _, g := range groups {
		if path == "processors/"+g || strings.HasPrefix(path, "processors/"+g+"/") {
			return g
		}
	}
	return ""
}

// What documents say that tests show, tests of these names show.
func TestDocumentsNameTestsThatThereAre(t *testing.T) {
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
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	named := 0
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`").FindAllSubmatch(text, -1) {
			named++
			if !have[string(name[1])] {
				t.Errorf("%s names %s, which is not there", document, name[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("%d names of tests were found in %v", named, documents)
	}
}

// packages maps each package of the module, without the module's path, to the module's packages it imports outside
// of tests.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for path, imports := range importsOf(t) {
		var own []string
		for _, imp := range imports {
			if rest, ok := strings.CutPrefix(imp, module); ok {
				own = append(own, rest)
			}
		}
		all[path] = own
	}
	return all
}

// importsOf maps each package of the module, without the module's path, to all packages it imports outside of tests.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatalf("go list: %v", err)
		}
		all[strings.TrimPrefix(p.ImportPath, module)] = p.Imports
	}
	return all
}
