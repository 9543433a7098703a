package topics_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// makers are the functions that create clients or client configurations.
var makers = []string{"kgo.NewClient", "sarama.NewConfig", "goka.DefaultConfig", "sr.NewClient"}

// allowed lists the files that may call them. Tests may call them, too.
var allowed = map[string][]string{
	"topics/kafka.go":     {"kgo.NewClient", "sarama.NewConfig"},
	"schemas/registry.go": {"sr.NewClient"},
}

// Every client is created in one place, with the settings that the program relies on: read committed, one hash, all
// replicas.
func TestClients_AreCreatedInOnePlace(t *testing.T) {
	found := map[string]bool{}
	for _, path := range goFiles(t) {
		for _, maker := range makersIn(t, filepath.Join("..", path)) {
			expect.True(t, slices.Contains(allowed[path], maker), "%s may call %s: use topics.Kafka", path, maker)
			found[path+" "+maker] = true
		}
	}
	for path, list := range allowed {
		for _, maker := range list {
			expect.True(t, found[path+" "+maker], "%s calls %s, as the list says", path, maker)
		}
	}
}

// goFiles returns the module's files without tests, by path from the module root.
func goFiles(t *testing.T) []string {
	t.Helper()
	must.Get(os.Stat("../go.mod"))(t)
	var paths []string
	must.OK(t, fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && len(path) > 1 && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			paths = append(paths, path)
		}
		return nil
	}))
	return paths
}

func makersIn(t *testing.T, path string) []string {
	t.Helper()
	file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
	var calls []string
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && slices.Contains(makers, pkg.Name+"."+sel.Sel.Name) {
				calls = append(calls, pkg.Name+"."+sel.Sel.Name)
			}
		}
		return true
	})
	return calls
}
