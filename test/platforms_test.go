package test

import (
	"go/ast"
	"go/parser"
	source "go/token"
	"go/types"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/go/packages"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// platforms returns the platforms of the released binaries.
func platforms(t *testing.T) (all []string) {
	t.Helper()
	var release struct {
		Builds []struct{ Goos, Goarch []string }
	}
	must.OK(t, yaml.Unmarshal([]byte(readText(t, ".goreleaser.yaml")), &release))
	for _, system := range release.Builds[0].Goos {
		for _, arch := range release.Builds[0].Goarch {
			all = append(all, system+"/"+arch)
		}
	}
	return all
}

// `make cross` must build for the platforms of a release. On each of them, the program must pass the type checker.
func TestRelease_PlatformsPassTypeCheck(t *testing.T) {
	line := regexp.MustCompile(`(?m)^PLATFORMS := (.*)$`).FindStringSubmatch(readText(t, "Makefile"))
	if line == nil || line[1] != strings.Join(platforms(t), " ") {
		t.Errorf("the Makefile has %q, a release has %q", line, platforms(t))
	}
	for _, platform := range platforms(t) {
		system, arch, _ := strings.Cut(platform, "/")
		expect.AtLeast(t, typeCheck(t, system, arch), 60, "%s: checked packages", platform)
	}
}

// typeCheck reports the errors of the type checker for a platform without cgo. It skips the function bodies of dependencies, so it takes
// a tenth of the time of a build. It returns the number of packages of the module.
func typeCheck(t *testing.T, system, arch string) (ours int) {
	t.Helper()
	cfg := &packages.Config{
		Mode: packages.NeedName | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule,
		Env:  append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch),
	}
	checked, files := map[string]*types.Package{"unsafe": types.Unsafe}, source.NewFileSet()
	packages.Visit(must.Get(packages.Load(cfg, "."))(t), nil, func(p *packages.Package) { // imported packages first
		for _, err := range p.Errors {
			t.Errorf("%s/%s: %v", system, arch, err)
		}
		main := p.Module != nil && p.Module.Main
		if main {
			ours++
		}
		if p.PkgPath == "unsafe" {
			return
		}
		checker := types.Config{
			Importer: importer(func(path string) *types.Package { return checked[p.Imports[path].PkgPath] }),
			Sizes:    types.SizesFor("gc", arch), IgnoreFuncBodies: !main, Error: func(err error) {
				if main {
					t.Errorf("%s/%s: %v", system, arch, err)
				}
			},
		}
		checked[p.PkgPath], _ = checker.Check(p.PkgPath, files, parse(t, files, p.CompiledGoFiles), nil) // errors: see Error
	})
	return ours
}

// importer returns checked packages. It implements types.Importer.
type importer func(path string) *types.Package

func (i importer) Import(path string) (*types.Package, error) { return i(path), nil }

func parse(t *testing.T, files *source.FileSet, names []string) (parsed []*ast.File) {
	t.Helper()
	for _, name := range names {
		parsed = append(parsed, must.Get(parser.ParseFile(files, name, nil, parser.SkipObjectResolution))(t))
	}
	return parsed
}
