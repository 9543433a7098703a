package processors_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// packagesWithRows are the groups, the rows that the kernel itself keeps, and the stores of serving.
var packagesWithRows = []string{
	"objects", "actors", "fanout", "related", "pools", "interests", "insights", "retries", "rows",
	"../serving/feature", "../serving/feedstore", "../serving/feedstore/cassandra",
}

var (
	// kindName matches the constants that begin the names of rows, whose values are single bytes.
	kindName = regexp.MustCompile(`^(row|[kK]ind)[A-Z]|(Row|Table|Kind)$`)
	// deletedBy matches a line of the section: the kind, its content, and what deletes it.
	deletedBy = regexp.MustCompile(`^\t('.'|[a-z_]+) +(\S.*)$`)
	// means are the possible causes of a deletion; never must give the reason.
	means = regexp.MustCompile(`\b(event|cap|timer|sweep|TTL|erasure)\b|\bnever: \S`)
)

// The section "Deletion" of each package comment must say what deletes each kind of row. Therefore no row is kept forever by
// mistake.
func TestRowKinds_DocumentTheirDeletion(t *testing.T) {
	for _, dir := range packagesWithRows {
		kinds, documented := kindsOf(t, dir)
		expect.AtLeast(t, len(kinds), 3, "%s: kinds of rows, %q", dir, kinds)
		for _, kind := range kinds {
			switch text, found := documented[kind]; {
			case !found:
				t.Errorf("%s: the section Deletion of the package comment has no line for kind %s", dir, kind)
			case !means.MatchString(text):
				t.Errorf("%s: kind %s: %q names no event, cap, timer, sweep, TTL or erasure; if nothing deletes it, write never: and the reason", dir, kind, text)
			}
			delete(documented, kind)
		}
		for kind := range documented {
			t.Errorf("%s: the section Deletion has %s, which is not a kind of row", dir, kind)
		}
	}
}

// kindsOf returns the kinds of rows of a package and of its folder layout, and the lines of its section Deletion by kind.
func kindsOf(t *testing.T, dir string) (kinds []string, documented map[string]string) {
	t.Helper()
	documented = map[string]string{}
	files := must.Get(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	layout := must.Get(filepath.Glob(filepath.Join(dir, "layout", "*.go")))(t)
	for _, name := range append(files, layout...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments))(t)
		maps.Copy(documented, sectionOf(file.Doc.Text()))
		ast.Inspect(file, func(n ast.Node) bool {
			kinds = append(kinds, kindsIn(n)...)
			return true
		})
	}
	return kinds, documented
}

// sectionOf returns the lines of the section Deletion of a package comment by kind.
func sectionOf(comment string) map[string]string {
	lines := map[string]string{}
	_, section, _ := strings.Cut(comment, "\nDeletion. ")
	for line := range strings.Lines(section) {
		line = strings.TrimRight(line, "\n")
		if m := deletedBy.FindStringSubmatch(line); m != nil {
			lines[m[1]] = m[2]
		} else if len(lines) > 0 && !strings.HasPrefix(line, "\t") { // the section has ended
			break
		}
	}
	return lines
}

// kindsIn returns the kinds of rows that a node declares: a constant of one byte, or a table of Cassandra.
func kindsIn(n ast.Node) (kinds []string) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i < len(n.Values) && kindName.MatchString(name.Name) {
				if lit, ok := n.Values[i].(*ast.BasicLit); ok && lit.Kind == token.CHAR {
					kinds = append(kinds, lit.Value)
				}
			}
		}
	case *ast.CompositeLit:
		list, ok := n.Type.(*ast.ArrayType)
		if !ok {
			return nil
		}
		if of, ok := list.Elt.(*ast.Ident); !ok || of.Name != "table" {
			return nil
		}
		for _, e := range n.Elts {
			table, isLiteral := e.(*ast.CompositeLit)
			if !isLiteral || len(table.Elts) == 0 {
				continue
			}
			if lit, ok := table.Elts[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if name, err := strconv.Unquote(lit.Value); err == nil {
					kinds = append(kinds, name)
				}
			}
		}
	}
	return kinds
}
