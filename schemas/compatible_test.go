package schemas

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hamba/avro/v2"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestCheckBackward(t *testing.T) {
	field := func(typ string) string { return recordSchema("R", fieldSchema("f", typ)) }
	inner := func(fields ...string) string { return recordSchema("I", fields...) }
	enum := func(symbols, more string) string {
		return `{"type":"enum","name":"E","symbols":[` + symbols + `]` + more + `}`
	}
	inSpace := func(space, typ string) string {
		return `{"type":"record","name":"R","namespace":"` + space + `","fields":[` + fieldSchema("f", typ) + `]}`
	}
	const millis, micros = `{"type":"long","logicalType":"timestamp-millis"}`, `{"type":"long","logicalType":"timestamp-micros"}`
	const withDefault = `{"name":"g","type":"string","default":""}`
	tests := []struct {
		name, reader, writer string
		want                 []string // all problems; nil: compatible
	}{
		{"the same", field("string"), field("string"), nil},
		{"field added with a default", recordSchema("R", fieldSchema("f", "int"), withDefault), field("int"), nil},
		{"field added without", recordSchema("R", fieldSchema("f", "int"), fieldSchema("g", "int")), field("int"), []string{"g: new field without a default"}},
		{"field removed", field("int"), recordSchema("R", fieldSchema("g", "string"), fieldSchema("f", "int")), nil},
		{"fields reordered", recordSchema("R", fieldSchema("a", "int"), fieldSchema("b", "string")), recordSchema("R", fieldSchema("b", "string"), fieldSchema("a", "int")), nil},
		{"field renamed", recordSchema("R", fieldSchema("g", "int")), field("int"), []string{"g: new field without a default"}},
		{"field renamed with an alias", recordSchema("R", `{"name":"g","aliases":["f"],"type":"int"}`), field("int"), nil},
		{"record renamed", recordSchema("S", fieldSchema("f", "int")), field("int"), []string{"record renamed from R to S"}},
		{"record renamed with an alias", `{"type":"record","name":"S","aliases":["R"],"fields":[{"name":"f","type":"int"}]}`, field("int"), nil},
		{"record renamed in a namespace, with an alias", `{"type":"record","name":"S","namespace":"n","aliases":["R"],"fields":[]}`, `{"type":"record","name":"R","namespace":"n","fields":[]}`, nil},
		{"record renamed in a namespace, another alias", `{"type":"record","name":"S","namespace":"n","aliases":["xR"],"fields":[]}`, `{"type":"record","name":"R","namespace":"n","fields":[]}`, []string{"record renamed from R to S"}},
		{"int to long", field("long"), field("int"), nil},
		{"int to double", field("double"), field("int"), nil},
		{"long to float", field("float"), field("long"), nil},
		{"float to double", field("double"), field("float"), nil},
		{"string to bytes", field("bytes"), field("string"), nil},
		{"bytes to string", field("string"), field("bytes"), nil},
		{"long to int", field("int"), field("long"), []string{"f: type changed from long to int"}},
		{"double to float", field("float"), field("double"), []string{"f: type changed from double to float"}},
		{"string to long", field("long"), field("string"), []string{"f: type changed from string to long"}},
		{"string to array", field(`{"type":"array","items":"string"}`), field("string"), []string{"f: type changed from string to array"}},
		{"milliseconds to microseconds", field(micros), field(millis), []string{"f: logical type changed from timestamp-millis to timestamp-micros"}},
		{"a number to microseconds", field(micros), field("long"), nil},
		{"enum gained a symbol", field(enum(`"A","B"`, "")), field(enum(`"A"`, "")), nil},
		{"enum lost a symbol", field(enum(`"A"`, "")), field(enum(`"A","B"`, "")), []string{"f: enum E lost symbol B and has no default"}},
		{"enum lost a symbol and has a default", field(enum(`"A"`, `,"default":"A"`)), field(enum(`"A","B"`, "")), nil},
		{"type became one of a union", field(`["null","string"]`), field("string"), nil},
		{"union lost a type", field("string"), field(`["null","string"]`), []string{"f|null: type changed from null to string"}},
		{"union gained a type", field(`["null","string","long"]`), field(`["null","string"]`), nil},
		{"type is not in a union", field(`["null","string"]`), field("boolean"), []string{"f: type boolean is not in the union"}},
		{"a union of records of one name", `["string",` + inSpace("n", "int") + `,` + inSpace("m", "string") + `]`, inSpace("m", "string"), nil},
		{"a union of two meanings", field(`[` + millis + `,` + micros + `]`), field(micros), nil},
		{"items", field(`{"type":"array","items":"int"}`), field(`{"type":"array","items":"string"}`), []string{"f[]: type changed from string to int"}},
		{"values", field(`{"type":"map","values":"int"}`), field(`{"type":"map","values":"string"}`), []string{"f{}: type changed from string to int"}},
		{"fixed of another size", field(`{"type":"fixed","name":"F","size":2}`), field(`{"type":"fixed","name":"F","size":3}`), []string{"f: fixed F changed from 3 to 2 bytes"}},
		{"several, deep inside", field(`{"type":"array","items":` + inner(fieldSchema("a", "int"), fieldSchema("b", "int"), fieldSchema("c", "int")) + `}`),
			field(`{"type":"array","items":` + inner(fieldSchema("a", "string"), fieldSchema("b", "int")) + `}`),
			[]string{"f[].a: type changed from string to int", "f[].c: new field without a default"}},
		{"recursive", `{"type":"record","name":"R","fields":[{"name":"next","type":["null","R"]},{"name":"v","type":"long"}]}`,
			`{"type":"record","name":"R","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","R"]}]}`, nil},
		{"recursive and broken", `{"type":"record","name":"R","fields":[{"name":"next","type":["null","R"]},{"name":"v","type":"long"}]}`,
			`{"type":"record","name":"R","fields":[{"name":"v","type":"string"},{"name":"next","type":["null","R"]}]}`, []string{"v: type changed from string to long"}},
		{"no schema", `{`, field("int"), []string{"reader's schema: parse schema: avro: unknown type: {"}},
	}
	for _, tt := range tests {
		var got []string
		if err := checkBackward(tt.reader, tt.writer); err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		expect.NoDiff(t, got, tt.want, "%s", tt.name)
	}
}

// TestCheckBackward_AcceptsOwnSchemas covers every default of this package's schemas: it reads a writer that has only the fields
// without a default.
func TestCheckBackward_AcceptsOwnSchemas(t *testing.T) {
	for _, r := range records(t, texts{}) {
		expect.Error(t, checkBackward(r.schema, r.schema), "", "%s", r.name)
		n := must.Get(parseReader(r.schema))(t)
		least := *n
		least.fields = slices.DeleteFunc(slices.Clone(n.fields), func(f field) bool { return f.def != nil })
		_, problems := resolve(n, &least)
		expect.NoDiff(t, problems, nil, "%s from its required fields", r.name)
	}
}

// parseTwice parses a schema with the library, including its defaults, and as nodes of this package. It skips schemas that
// are invalid.
func parseTwice(t *rapid.T, text string) (avro.Schema, *node) {
	s, err := avro.ParseWithCache(text, "", &avro.SchemaCache{})
	if err != nil {
		t.Skip(err)
	}
	n, err := parseReader(text)
	if err != nil {
		t.Skip(err)
	}
	return s, n
}

// drawPair draws a reader and a writer. They often have the same shape.
func drawPair(t *rapid.T, draw func(*rapid.T, int, map[string]int) string) (reader, writer string) {
	reader, writer = draw(t, 3, map[string]int{}), draw(t, 3, map[string]int{})
	if rapid.Bool().Draw(t, "same shape") {
		writer = strings.NewReplacer(`"long"`, `"int"`, `"float"`, `"int"`, `"A","B"`, `"A"`).Replace(reader)
	}
	return reader, writer
}

// drawSchema draws a schema of random shape. Two of them have the same names and few fields, so they are often, but not
// always, compatible. Null occurs only in unions, because the library does not read it elsewhere.
func drawSchema(t *rapid.T, depth int, names map[string]int) string {
	kinds := []string{"boolean", "int", "long", "float", "double", "bytes", "string", "enum", "fixed"}
	if depth > 0 {
		kinds = append(kinds, "record", "record", "record", "array", "map", "union", "union")
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "enum":
		symbols := []string{`"A","B"`, `"A"`, `"B","C","A"`}
		def := rapid.SampledFrom([]string{"", `,"default":"A"`}).Draw(t, "default")
		return fmt.Sprintf(`{"type":"enum","name":"%s","symbols":[%s]%s}`, fresh(names, "E"), rapid.SampledFrom(symbols).Draw(t, "symbols"), def)
	case "fixed":
		return fmt.Sprintf(`{"type":"fixed","name":"%s","size":%d}`, fresh(names, "F"), rapid.IntRange(1, 2).Draw(t, "size"))
	case "record":
		return drawRecord(t, depth, names)
	case "array":
		return `{"type":"array","items":` + drawSchema(t, depth-1, names) + `}`
	case "map":
		return `{"type":"map","values":` + drawSchema(t, depth-1, names) + `}`
	case "union":
		return drawUnion(t, depth, names)
	default:
		return `"` + kind + `"`
	}
}

func fresh(names map[string]int, name string) string {
	names[name]++
	return fmt.Sprint(name, names[name])
}

func drawRecord(t *rapid.T, depth int, names map[string]int) string {
	name := fresh(names, "R")
	var fields []string
	for _, f := range rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "order")[:rapid.IntRange(1, 3).Draw(t, "fields")] {
		typ := drawSchema(t, depth-1, names)
		def := map[string]string{
			`"string"`: `,"default":"x"`, `"int"`: `,"default":-3`, `"long"`: `,"default":7`, `"double"`: `,"default":0.5`,
			`"float"`: `,"default":0.5`, `"boolean"`: `,"default":true`, `"bytes"`: `,"default":"\u00ff"`,
		}[typ]
		if strings.HasPrefix(typ, `{"type":"array"`) {
			def = `,"default":[]`
		}
		if rapid.Bool().Draw(t, "no default") {
			def = ""
		}
		fields = append(fields, fmt.Sprintf(`{"name":%q,"type":%s%s}`, f, typ, def))
	}
	return recordSchema(name, fields...)
}

func drawUnion(t *rapid.T, depth int, names map[string]int) string {
	branches := rapid.Permutation([]string{`"null"`, `"string"`, `"long"`, `"boolean"`, `"double"`, "record", "array"}).Draw(t, "branches")
	branches = slices.Clone(branches[:rapid.IntRange(1, 4).Draw(t, "count")])
	for i, b := range branches {
		switch b {
		case "record":
			branches[i] = drawRecord(t, depth-1, names)
		case "array":
			branches[i] = `{"type":"array","items":"string"}`
		}
	}
	return "[" + strings.Join(branches, ",") + "]"
}

// TestCheckBackward_AgreesWithLibrary uses the library's own check as an oracle. It finds only one problem, without a
// path.
func TestCheckBackward_AgreesWithLibrary(t *testing.T) {
	var compatible, not int
	rapid.Check(t, func(t *rapid.T) {
		reader, writer := drawPair(t, drawSchema)
		r, _ := parseTwice(t, reader)
		w, _ := parseTwice(t, writer)
		want := avro.NewSchemaCompatibility().Compatible(r, w)
		got := checkBackward(reader, writer)
		if (got == nil) != (want == nil) {
			t.Fatalf("reader %s\nwriter %s\ngot  %v\nwant %v", reader, writer, got, want)
		}
		if got == nil {
			compatible++
			return
		}
		not++
	})
	expect.AtLeast(t, min(compatible, not), 10, "compatible pairs, and others")
}

// drawBody appends a random value of a schema in its binary encoding.
func drawBody(t *rapid.T, out []byte, n *node) []byte {
	switch n.kind {
	case kindBoolean:
		return append(out, byte(rapid.IntRange(0, 1).Draw(t, "boolean")))
	case kindInt:
		return appendLong(out, int64(rapid.Int32().Draw(t, "int")))
	case kindLong:
		return appendLong(out, rapid.Int64().Draw(t, "long"))
	case kindFloat, kindDouble, kindFixed:
		size := map[kind]int{kindFloat: 4, kindDouble: 8, kindFixed: n.size}[n.kind]
		return append(out, rapid.SliceOfN(rapid.ByteRange(1, 100), size, size).Draw(t, "bytes")...)
	case kindString, kindBytes:
		s := rapid.StringN(0, 4, 8).Draw(t, "string")
		return append(appendLong(out, int64(len(s))), s...)
	case kindEnum:
		return appendLong(out, int64(rapid.IntRange(0, len(n.symbols)-1).Draw(t, "enum")))
	case kindUnion:
		i := rapid.IntRange(0, len(n.branches)-1).Draw(t, "branch")
		return drawBody(t, appendLong(out, int64(i)), n.branches[i])
	case kindRecord:
		for _, f := range n.fields {
			out = drawBody(t, out, f.node)
		}
		return out
	case kindArray, kindMap:
		return drawBlocks(t, out, n)
	}
	return out // null
}

func drawBlocks(t *rapid.T, out []byte, n *node) []byte {
	for block := range rapid.IntRange(0, 2).Draw(t, "blocks") {
		count := rapid.IntRange(1, 2).Draw(t, "items")
		var items []byte
		for i := range count {
			if n.kind == kindMap {
				key := fmt.Sprint(block, i)
				items = append(appendLong(items, int64(len(key))), key...)
			}
			items = drawBody(t, items, n.items)
		}
		if rapid.Bool().Draw(t, "with its size") {
			out = appendLong(appendLong(out, int64(-count)), int64(len(items)))
		} else {
			out = appendLong(out, int64(count))
		}
		out = append(out, items...)
	}
	return appendLong(out, 0)
}

// TestResolve_AgreesWithLibrary reads random values of one schema with another: rewritten by resolve, and by the
// library's own resolution, which is safe on well-formed bytes.
func TestResolve_AgreesWithLibrary(t *testing.T) {
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		reader, writer := drawPair(t, drawRecord)
		r, rn := parseTwice(t, reader)
		w, wn := parseTwice(t, writer)
		step, problems := resolve(rn, wn)
		if problems != nil {
			t.Skip(problems)
		}
		body := drawBody(t, nil, wn)
		must.OK(t, conform(wn, body))
		rewritten := must.Get(step(&cursor{b: body}, nil))(t)
		must.OK(t, conform(rn, rewritten))
		both, err := avro.NewSchemaCompatibility().Resolve(r, w)
		if err != nil {
			t.Skip(err) // the library cannot widen one branch of a union to another
		}
		want, got := generic(t, both, body), generic(t, r, rewritten)
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, math.SmallestNonzeroFloat32)); diff != "" {
			t.Fatalf("reader %s\nwriter %s\nbody %x\nrewritten differs (-library +resolve):\n%s", reader, writer, body, diff)
		}
		read++
	})
	expect.AtLeast(t, read, 10, "values read")
}

func generic(t *rapid.T, s avro.Schema, body []byte) any {
	var v any
	uncached := avro.Config{DisableCaching: true}.Freeze() // its cache confuses schemas that differ only in defaults
	must.OK(t, uncached.Unmarshal(s, body, &v))
	return untag(v)
}

// untag removes the map with the name of the branch from values of unions, which the library omits if the writer has no
// union. No field here has the name of a type. Numbers become float64: for a union with double and long, the library
// chooses the first for a long, and this package the long, as Java does.
func untag(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case float32:
		return float64(v)
	case []any:
		for i := range v {
			v[i] = untag(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = untag(v[name])
			if isType := len(name) > 1 && !strings.ContainsAny(name, "0123456789") || name[0] == 'R'; isType && len(v) == 1 {
				return v[name]
			}
		}
	}
	return v
}
