package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hamba/avro/v2"
)

// Only this file, and file.go for files that this program writes itself, use the Avro library, hamba/avro. The library is
// trusted with this package's schemas and with mapping values to structs, but not with bytes. It lets six bytes exhaust the
// memory, accepts many truncated records, and can skip a field in an endless loop. Therefore conform checks every body first, and each
// body is decoded only with its own schema. The limits below matter only if conform is wrong. The library parses other
// schemas without the defaults of their fields; see dropDefaults. Its schema resolution is not used: it rejects a whole
// schema for one bad branch or another record name, and cannot widen a branch of a union to another one.

// maxSchemaBytes bounds the text of a schema.
const maxSchemaBytes = 1 << 20

// codec maps bodies of one schema to structs. It is safe for concurrent use.
type codec struct {
	schema  avro.Schema
	writers sync.Pool // of *avro.Writer
	readers sync.Pool // of *avro.Reader
}

// newCodec returns the codec of a schema of this package.
func newCodec(text string, maxBytes int) (*codec, error) {
	embedded, err := embedFacets(text)
	if err != nil {
		return nil, err
	}
	schema, err := avro.ParseWithCache(embedded, "", &avro.SchemaCache{})
	if err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	api := avro.Config{
		BlockLength:            maxBytes, // one block, so that a decoded slice is allocated once
		DisableBlockSizeHeader: true,     // no reader here skips blocks
		MaxByteSliceSize:       maxBytes, // bytes and strings; the default is 1 MiB
		MaxSliceAllocSize:      maxBytes, // counts items, not bytes; there is no such limit for maps
		UnionResolutionError:   true,
	}.Freeze()
	return &codec{
		schema:  schema,
		writers: sync.Pool{New: func() any { return avro.NewWriter(nil, 512, avro.WithWriterConfig(api)) }},
		readers: sync.Pool{New: func() any { return avro.NewReader(nil, 0, avro.WithReaderConfig(api)) }},
	}, nil
}

// encode returns head followed by the body of rec, a pointer to a struct.
func (c *codec) encode(head []byte, rec any) ([]byte, error) {
	w := c.writers.Get().(*avro.Writer)
	defer c.writers.Put(w)
	w.Reset(nil)
	w.Error = nil
	_, _ = w.Write(head) // to memory: never fails
	w.WriteVal(c.schema, rec)
	if w.Error != nil {
		return nil, w.Error
	}
	return slices.Clone(w.Buffer()), nil
}

// decode decodes a body that conforms to the schema into rec, a pointer to a zero struct. rec does not refer to body.
// Several strings of rec, and of records decoded later, may share one array of 1 KiB.
func (c *codec) decode(body []byte, rec any) error {
	r := c.readers.Get().(*avro.Reader)
	defer c.readers.Put(r)
	r.Reset(body)
	r.Error = nil
	r.ReadVal(c.schema, rec)
	if r.Error != nil {
		return r.Error
	}
	if r.Peek(); r.Error == nil {
		return fmt.Errorf("read %s: trailing bytes", c.schema.Type())
	}
	r.Reset(nil)
	return nil
}

// parseSchema parses the text of any schema, including untrusted ones, into nodes without the defaults of their fields.
func parseSchema(text string) (*node, error) {
	if len(text) > maxSchemaBytes {
		return nil, fmt.Errorf("parse schema: %d bytes, at most %d are allowed", len(text), maxSchemaBytes)
	}
	var parsed any
	if json.Unmarshal([]byte(text), &parsed) == nil { // the library parses text that is not JSON as the name of a type
		dropDefaults(parsed)
		bare, err := json.Marshal(parsed)
		if err != nil {
			return nil, fmt.Errorf("parse schema: %w", err)
		}
		text = string(bare)
	}
	return parseReader(text)
}

// dropDefaults removes all defaults, which only a reader needs. When the library parses a default, it fills in
// whole records of nested defaults, which a few hundred bytes can make endless or gigabytes large. It also panics on empty
// unions. dropDefaults accepts names in any case, as the library does.
func dropDefaults(schema any) {
	switch schema := schema.(type) {
	case []any:
		for _, s := range schema {
			dropDefaults(s)
		}
	case map[string]any:
		maps.DeleteFunc(schema, func(name string, _ any) bool { return strings.EqualFold(name, "default") })
		for _, s := range schema {
			dropDefaults(s)
		}
	}
}

// parseReader parses a trusted schema with the defaults of its fields. It returns an error if the library panics
// nevertheless: otherwise the schema's records would crash the process again after each start.
func parseReader(text string) (n *node, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			n, err = nil, fmt.Errorf("parse schema: panic: %v", cause)
		}
	}()
	schema, err := avro.ParseWithCache(text, "", &avro.SchemaCache{})
	if err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	t := tree{named: map[string]*node{}}
	n = t.node(schema)
	if err := errors.Join(t.err, n.measure()); err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	return n, nil
}

// encodeDefault returns the encoded default of a field, which the library has validated.
func encodeDefault(f *avro.Field) ([]byte, error) {
	if f.Default() == nil {
		if f.Type().Type() == avro.Union {
			return []byte{0}, nil // a default is a value of the first branch
		}
		return []byte{}, nil
	}
	return avro.Config{DisableCaching: true}.Freeze().Marshal(f.Type(), f.Default())
}

// tree converts the library's schema to nodes.
type tree struct {
	named map[string]*node
	err   error // of the last default that cannot be encoded
}

func (t *tree) node(s avro.Schema) *node {
	n := &node{kind: kindOf(s)}
	switch s := s.(type) {
	case *avro.RefSchema:
		return t.node(s.Schema())
	case *avro.PrimitiveSchema:
		if s.Logical() != nil {
			n.logical = string(s.Logical().Type())
		}
	case *avro.ArraySchema:
		n.items = t.node(s.Items())
	case *avro.MapSchema:
		n.items = t.node(s.Values())
	case *avro.UnionSchema:
		for _, b := range s.Types() {
			n.branches = append(n.branches, t.node(b))
		}
	case avro.NamedSchema:
		return t.namedNode(s)
	}
	return n
}

// kindOf returns the kind of a schema, or an undefined one for a reference and for an error of an RPC.
func kindOf(s avro.Schema) kind { return kind(slices.Index(typeNames, string(s.Type()))) }

func (t *tree) namedNode(s avro.NamedSchema) *node {
	if n := t.named[s.FullName()]; n != nil {
		return n
	}
	n := &node{kind: kindOf(s), name: s.Name(), fullName: s.FullName(), aliases: s.Aliases()}
	t.named[s.FullName()] = n
	switch s := s.(type) {
	case *avro.EnumSchema:
		n.symbols, n.fallback = s.Symbols(), s.Default()
	case *avro.FixedSchema:
		n.size = s.Size()
	case *avro.RecordSchema:
		n.kind = kindRecord // the library has a second kind for RPC errors
		for _, f := range s.Fields() {
			to := field{name: f.Name(), aliases: f.Aliases(), node: t.node(f.Type())}
			if f.HasDefault() {
				var err error
				if to.def, err = encodeDefault(f); err != nil {
					t.err = fmt.Errorf("default of %s: %w", f.Name(), err)
				}
			}
			n.fields = append(n.fields, to)
		}
	}
	return n
}
