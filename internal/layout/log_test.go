package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// logging maps logging functions to the number of arguments before the attributes.
var logging = map[string]int{
	"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0, "Log": 3, "LogAttrs": 3,
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2,
	"Any": 0, "String": 0, // of slog: one attribute
}

// Logging calls must use one key for errors, so one search finds all of them.
func TestLog_ErrorsHaveOneKey(t *testing.T) {
	atRoot(t)
	found := 0
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for key, value := range fieldsOf(n) {
				if isError(value) {
					found++
				}
				if wrong := key == "err" || key == "errors"; wrong || isError(value) && key != "error" {
					t.Errorf("%s: an error is logged under the key %q, want error", files.Position(n.Pos()), key)
				}
			}
			return true
		})
		return nil
	})
	must.OK(t, err)
	expect.AtLeast(t, found, 20, "logged errors")
}

// fieldsOf returns the attributes of a logging call by key, or nil for other calls.
func fieldsOf(n ast.Node) map[string]ast.Expr {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	to, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	before, known := logging[to.Sel.Name]
	if !known || len(call.Args) < before {
		return nil
	}
	fields := map[string]ast.Expr{}
	for args := call.Args[before:]; len(args) > 0; args = args[1:] {
		literal, ok := args[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || len(args) < 2 {
			continue // the attribute is a variable: skip to the next key
		}
		key, err := strconv.Unquote(literal.Value)
		if err == nil && !strings.Contains(key, " ") { // a string with spaces is a format, not a key
			fields[key] = args[1]
		}
		args = args[1:]
	}
	return fields
}

// isError reports whether an expression is an error or its text, judged by its name.
func isError(value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.Ident:
		return v.Name == "err" || strings.HasSuffix(v.Name, "Err")
	case *ast.SelectorExpr:
		return v.Sel.Name == "err" || v.Sel.Name == "Err"
	case *ast.CallExpr:
		to, ok := v.Fun.(*ast.SelectorExpr)
		return ok && (to.Sel.Name == "Error" || to.Sel.Name == "Err") && len(v.Args) == 0
	}
	return false
}
