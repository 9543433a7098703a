package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// logging are the functions that take what a line of the log says, by how many of their arguments come before the fields.
var logging = map[string]int{
	"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0, "Log": 3, "LogAttrs": 3,
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2,
	"Any": 0, "String": 0, // of slog: a field of its own
}

// What went wrong stands in the log under one key, so that one search finds it whoever says it.
func TestErrorsAreLoggedUnderOneKey(t *testing.T) {
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
					t.Errorf("%s: what went wrong is logged as %q, want error", files.Position(n.Pos()), key)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("%d errors that are logged were found", found)
	}
}

// fieldsOf are the fields that a call gives to the log, by key; nil: it gives none.
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
			continue // a field that is made elsewhere: one by one up to the next key
		}
		key, err := strconv.Unquote(literal.Value)
		if err == nil && !strings.Contains(key, " ") { // a text for fmt is no key
			fields[key] = args[1]
		}
		args = args[1:]
	}
	return fields
}

// isError says whether a value is an error by its name, as it is or in words.
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
