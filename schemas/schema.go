package schemas

import (
	"embed"
	"fmt"
	"reflect"
	"strings"
)

// schemaFiles are the schemas of the Go types of this package, one file per record.
//
//go:embed avsc/*.avsc
var schemaFiles embed.FS

// Schema returns the Avro schema of a record type of this package, as it is registered. It returns an error for any other
// type.
func Schema[T any]() (string, error) { return schemaText(new(T)) }

// schemaText returns the schema of the type that rec points to.
func schemaText(rec any) (string, error) {
	text, err := schemaFiles.ReadFile("avsc/" + schemaFile(rec) + ".avsc")
	if err != nil || reflect.TypeOf(rec).Elem().PkgPath() != reflect.TypeFor[Event]().PkgPath() {
		return "", fmt.Errorf("schema of %T: not a record of package schemas", rec)
	}
	return resolveReferences(string(text), map[string]bool{})
}

// recordName returns the name of the type that rec points to, which is the name of its Avro record.
func recordName(rec any) string { return reflect.TypeOf(rec).Elem().Name() }

// schemaFile returns the name of the file with the schema of a record: the record's name in snake case, without Event at
// the end.
func schemaFile(rec any) string { return fileName(strings.TrimSuffix(recordName(rec), "Event")) }

// kind is a type of the Avro specification, a number because the walk of each record compares kinds.
type kind uint8

const (
	kindNull kind = iota
	kindBoolean
	kindInt
	kindLong
	kindFloat
	kindDouble
	kindBytes
	kindString
	kindRecord
	kindEnum
	kindArray
	kindMap
	kindUnion
	kindFixed
)

var typeNames = []string{
	"null", "boolean", "int", "long", "float", "double", "bytes", "string", "record", "enum", "array", "map", "union", "fixed",
}

// String returns the name of the kind in a schema.
func (k kind) String() string { return typeNames[k] }

// node is one type of a parsed schema. A repeated reference to a named type is the same node, so the nodes of a recursive
// schema form a cycle.
type node struct {
	kind     kind
	logical  string   // logical type of a primitive, "" for none
	name     string   // of a record, enum or fixed, without its namespace
	fullName string   // including its namespace
	aliases  []string // of name
	fields   []field  // of a record, in wire order
	items    *node    // of an array or map
	branches []*node  // of a union
	symbols  []string // of an enum
	fallback string   // default symbol of an enum, "" for none
	size     int      // of a fixed
	min      int      // minimum number of bytes of an encoded value
}

type field struct {
	name    string
	aliases []string
	node    *node
	def     []byte // encoded value of the field if the writer has none; nil: the field is required
}

// label returns the name of the type for messages.
func (n *node) label() string {
	if n.name != "" {
		return n.kind.String() + " " + n.name
	}
	return n.kind.String()
}

// measure sets min in every node below n. It returns an error for an array whose items take no bytes, because a few bytes
// could declare any number of them, and for a fixed type that exceeds MaxRecordBytes.
func (n *node) measure() error {
	seen := map[*node]bool{}
	n.setMin(seen)
	for at := range seen {
		switch {
		case at.kind == kindArray && at.items.min == 0:
			return fmt.Errorf("array of %s: items without bytes are not supported", at.items.label())
		case at.size > MaxRecordBytes:
			return fmt.Errorf("%s of %d bytes, at most %d are supported", at.label(), at.size, MaxRecordBytes)
		}
	}
	return nil
}

// setMin visits each type once. On a cycle the inner visit counts as 0 bytes, which only lowers the bound.
func (n *node) setMin(seen map[*node]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	switch n.kind {
	case kindNull:
	case kindFloat:
		n.min = 4
	case kindDouble:
		n.min = 8
	case kindFixed:
		n.min = n.size
	case kindRecord:
		for _, f := range n.fields {
			f.node.setMin(seen)
			n.min = min(n.min+f.node.min, MaxRecordBytes+1) // records of two records each would overflow
		}
	default:
		n.min = 1 // a varint: the value, a length, an index or the end of the blocks
	}
	if n.items != nil {
		n.items.setMin(seen)
	}
	for _, b := range n.branches {
		b.setMin(seen)
	}
}
