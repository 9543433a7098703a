package schemas

import (
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// TestSchema_MatchesType compares every schema with its Go struct: the same fields, of corresponding types.
func TestSchema_MatchesType(t *testing.T) {
	for _, r := range records(t, texts{}) {
		t.Run(r.file, func(t *testing.T) {
			n := must.Get(parseReader(r.schema))(t)
			typ := reflect.TypeOf(r.zero)
			expect.Equal(t, n.name, typ.Name(), "schema is named")
			matchRecord(t, typ.Name(), n, typ)
		})
	}
}

// fieldsOf returns the types of a struct's fields by their names on the wire. An embedded struct without a tag has its fields
// there.
func fieldsOf(typ reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range typ.Fields() {
		if f.Anonymous && f.Tag.Get("avro") == "" {
			maps.Copy(fields, fieldsOf(f.Type))
			continue
		}
		fields[f.Tag.Get("avro")] = f.Type
	}
	return fields
}

func matchRecord(t *testing.T, path string, n *node, typ reflect.Type) {
	t.Helper()
	got, want := map[string]*node{}, fieldsOf(typ)
	for _, f := range n.fields {
		got[f.name] = f.node
	}
	for name, goType := range want {
		if got[name] == nil {
			t.Fatalf("%s: no field %s in the schema", path, name)
		}
		matchType(t, path+"."+name, got[name], goType)
	}
	must.Equal(t, len(got), len(want), "%s: fields of the schema %v, and of the struct %v", path, got, want)
}

func matchType(t *testing.T, path string, n *node, typ reflect.Type) {
	t.Helper()
	if n.kind == kindUnion { // null or a value; Go uses the zero value for null
		if len(n.branches) != 2 || n.branches[0].kind != kindNull {
			t.Errorf("%s: union, but not of null and one type", path)
			return
		}
		n = n.branches[1]
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
	}
	want := map[kind]reflect.Kind{
		kindBoolean: reflect.Bool, kindInt: reflect.Int32, kindLong: reflect.Int64, kindFloat: reflect.Float32,
		kindDouble: reflect.Float64, kindString: reflect.String, kindBytes: reflect.Slice,
		kindArray: reflect.Slice, kindMap: reflect.Map, kindRecord: reflect.Struct,
	}[n.kind]
	if typ.Kind() != want {
		t.Errorf("%s: %s in the schema, %s in Go", path, n.kind, typ)
		return
	}
	expect.Equal(t, n.logical == "timestamp-micros", typ == reflect.TypeFor[Micros](), "%s: %s has a logical type of times", path, typ)
	switch n.kind {
	case kindRecord:
		matchRecord(t, path, n, typ)
	case kindArray, kindMap:
		matchType(t, path+"[]", n.items, typ.Elem())
	case kindBytes:
		expect.Equal(t, typ.Elem().Kind(), reflect.Uint8, "%s: elements in Go; bytes in the schema", path)
	}
}

// TestSchema_Files compares the directory with the records: no file without a record, none used twice. Some records are only
// parts of others.
func TestSchema_Files(t *testing.T) {
	entries := must.Get(schemaFiles.ReadDir("avsc"))(t)
	got, want := []string(nil), []string{"facets", "neighbor", "served_item"}
	for _, e := range entries {
		got = append(got, strings.TrimSuffix(e.Name(), ".avsc"))
	}
	for _, r := range records(t, texts{}) {
		want = append(want, r.file)
	}
	slices.Sort(want)
	expect.NoDiff(t, got, want, "records (-) and files (+)")
}

func TestSchema_RejectsOtherTypes(t *testing.T) {
	expect.Fails(t, expect.ErrorOf(Schema[Chunk]()), "schema of a chunk")
	expect.Fails(t, expect.ErrorOf(NewSerde[Chunk]("chunks-value", 1, texts{})), "serde of a chunk")
	for _, id := range []int{-1, 1 << 31} {
		expect.Fails(t, expect.ErrorOf(NewSerde[Tick]("ticks-value", id, texts{})), "serde of schema id %d", id)
	}
}

func TestParseSchema_RejectsInvalidSchemas(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no JSON", `{`, "parse schema"},
		{"unknown type", `"varchar"`, "parse schema"},
		{"items without bytes", `{"type":"array","items":"null"}`, "items without bytes"},
		{"items that are empty records", `{"type":"array","items":{"type":"record","name":"E","fields":[]}}`, "items without bytes"},
		{"such an array deep inside", `{"type":"record","name":"R","fields":[{"name":"f","type":{"type":"map","values":["string",{"type":"array","items":"null"}]}}]}`, "items without bytes"},
		{"too long", strings.Repeat(" ", maxSchemaBytes+1), "at most 1048576 are allowed"},
	} {
		expect.Error(t, expect.ErrorOf(parseSchema(tt.text)), tt.want, "%s", tt.name)
	}
}

// TestAvroLibrary_IsImportedInTwoFiles keeps the Avro library replaceable: only two files import it. Tests may use it as an oracle.
func TestAvroLibrary_IsImportedInTwoFiles(t *testing.T) {
	files := must.Get(filepath.Glob("*.go"))(t)
	var got []string
	for _, name := range files {
		f := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly))(t)
		for _, imp := range f.Imports {
			if strings.Contains(imp.Path.Value, "avro") && !strings.HasSuffix(name, "_test.go") {
				got = append(got, name)
			}
		}
	}
	got = slices.Compact(got)
	expect.NoDiff(t, got, []string{"codec.go", "file.go"}, "files that import it")
}
