package schemas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/internal/convert"
)

// step rewrites one value: it reads it from in, in the writer's schema, and appends it to out in the reader's schema.
type step func(in *cursor, out []byte) ([]byte, error)

// resolve returns a step that rewrites a value of the writer's schema to the reader's, by the rules of "schema resolution"
// in the Avro specification. It also returns the problems that prevent rewriting some or all values. The step fails only
// for a value with such a problem. Records are matched by their position; a changed name is a problem, but does not fail
// the step.
func resolve(reader, writer *node) (step, []error) {
	r := resolver{steps: map[pair]*step{}}
	s := r.resolve("", reader, writer)
	return s, r.problems
}

type pair struct{ reader, writer *node }

type resolver struct {
	problems []error
	steps    map[pair]*step // of records, for recursive schemas
}

// problem records a problem at path, and returns a step that fails with it.
func (r *resolver) problem(path, format string, args ...any) step {
	err := fmt.Errorf(format, args...)
	if path != "" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	r.problems = append(r.problems, err)
	return func(*cursor, []byte) ([]byte, error) { return nil, err }
}

func (r *resolver) resolve(path string, reader, writer *node) step {
	switch {
	case writer.kind == kindUnion:
		return r.fromUnion(path, reader, writer)
	case reader.kind == kindUnion:
		return r.intoUnion(path, reader, writer)
	case reader.kind != writer.kind:
		return r.promote(path, reader, writer)
	}
	switch reader.kind {
	case kindRecord:
		return r.record(path, reader, writer)
	case kindArray:
		return r.array(path, reader, writer)
	case kindMap:
		return r.mapping(path, reader, writer)
	case kindEnum:
		return r.enum(path, reader, writer)
	case kindFixed:
		return r.fixed(path, reader, writer)
	}
	return r.primitive(path, reader, writer)
}

// copyValue returns a step that copies a value of schema n.
func copyValue(n *node) step {
	return func(in *cursor, out []byte) ([]byte, error) {
		start := in.pos
		if err := in.walk(n); err != nil {
			return nil, err
		}
		return append(out, in.b[start:in.pos]...), nil
	}
}

// primitive copies the value unless its meaning changed: milliseconds read as microseconds would be silently wrong.
func (r *resolver) primitive(path string, reader, writer *node) step {
	if reader.logical != writer.logical && reader.logical != "" && writer.logical != "" {
		return r.problem(path, "logical type changed from %s to %s", writer.logical, reader.logical)
	}
	return copyValue(writer)
}

// promotes reports whether the specification lets a reader use a value of one primitive type as another.
func promotes(from, to kind) bool {
	switch from {
	case kindInt:
		return to == kindLong || to == kindFloat || to == kindDouble
	case kindLong:
		return to == kindFloat || to == kindDouble
	case kindFloat:
		return to == kindDouble
	case kindString:
		return to == kindBytes
	case kindBytes:
		return to == kindString
	}
	return false
}

func (r *resolver) promote(path string, reader, writer *node) step {
	if !promotes(writer.kind, reader.kind) {
		return r.problem(path, "type changed from %s to %s", writer.label(), reader.label())
	}
	switch {
	case reader.kind == kindFloat:
		return func(in *cursor, out []byte) ([]byte, error) {
			v, err := in.long()
			return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v))), err
		}
	case reader.kind == kindDouble && writer.kind == kindFloat:
		return widen
	case reader.kind == kindDouble:
		return func(in *cursor, out []byte) ([]byte, error) {
			v, err := in.long()
			return binary.LittleEndian.AppendUint64(out, math.Float64bits(float64(v))), err
		}
	}
	return copyValue(writer) // int as long, string as bytes and back: the bytes are the same
}

func widen(in *cursor, out []byte) ([]byte, error) {
	if err := in.skip(4); err != nil {
		return nil, err
	}
	v := math.Float32frombits(binary.LittleEndian.Uint32(in.b[in.pos-4:]))
	return binary.LittleEndian.AppendUint64(out, math.Float64bits(float64(v))), nil
}

func (r *resolver) fromUnion(path string, reader, writer *node) step {
	branches := convert.All(writer.branches, func(b *node) step { return r.resolve(path+"|"+b.label(), reader, b) })
	return func(in *cursor, out []byte) ([]byte, error) {
		i, err := in.index(len(branches))
		if err != nil {
			return nil, err
		}
		return branches[i](in, out)
	}
}

func (r *resolver) intoUnion(path string, reader, writer *node) step {
	i := branchFor(reader.branches, writer)
	if i < 0 {
		return r.problem(path, "type %s is not in the union", writer.label())
	}
	inner := r.resolve(path, reader.branches[i], writer)
	return func(in *cursor, out []byte) ([]byte, error) {
		return inner(in, appendLong(out, int64(i)))
	}
}

// branchFor returns the branch that equals the writer's type, including its namespace and logical type. Otherwise it
// returns the first branch of the writer's type, else the first that the type can be promoted to, else -1. (The
// specification takes the first that matches. Java's implementation, which most writers follow, works as described here.)
func branchFor(branches []*node, writer *node) int {
	for _, fits := range []func(b *node) bool{
		func(b *node) bool {
			return b.kind == writer.kind && b.fullName == writer.fullName && b.logical == writer.logical
		},
		func(b *node) bool { return b.kind == writer.kind && sameName(b, writer) },
		func(b *node) bool { return promotes(writer.kind, b.kind) },
	} {
		if i := slices.IndexFunc(branches, fits); i >= 0 {
			return i
		}
	}
	return -1
}

func sameName(reader, writer *node) bool {
	return reader.name == writer.name || slices.ContainsFunc(reader.aliases, func(a string) bool {
		return a == writer.name || strings.HasSuffix(a, "."+writer.name)
	})
}

func (r *resolver) array(path string, reader, writer *node) step {
	item := r.resolve(path+"[]", reader.items, writer.items)
	return eachBlock(writer.items.min, item)
}

func (r *resolver) mapping(path string, reader, writer *node) step {
	key := copyValue(&node{kind: kindString})
	value := r.resolve(path+"{}", reader.items, writer.items)
	return eachBlock(1+writer.items.min, func(in *cursor, out []byte) ([]byte, error) {
		out, err := key(in, out)
		if err != nil {
			return nil, err
		}
		return value(in, out)
	})
}

var errTooLarge = errors.New("too large in the reader's schema")

// eachBlock rewrites the items of an array or map, block by block. Defaults can make a small item large, so it bounds the
// output.
func eachBlock(min int, item step) step {
	return func(in *cursor, out []byte) ([]byte, error) {
		for {
			count, _, err := in.block(min)
			if err != nil {
				return nil, err
			}
			out = appendLong(out, int64(count))
			if count == 0 {
				return out, nil
			}
			for range count {
				if out, err = item(in, out); err != nil {
					return nil, err
				}
				if len(out) > maxResolvedBytes {
					return nil, errTooLarge
				}
			}
		}
	}
}

func (r *resolver) enum(path string, reader, writer *node) step {
	if !sameName(reader, writer) {
		r.problem(path, "enum renamed from %s to %s", writer.name, reader.name)
	}
	to := make([]int, len(writer.symbols))
	for i, symbol := range writer.symbols {
		to[i] = slices.Index(reader.symbols, symbol)
		if to[i] < 0 && reader.fallback != "" {
			to[i] = slices.Index(reader.symbols, reader.fallback)
		}
		if to[i] < 0 {
			r.problem(path, "enum %s lost symbol %s and has no default", reader.name, symbol)
		}
	}
	return func(in *cursor, out []byte) ([]byte, error) {
		i, err := in.index(len(to))
		if err != nil {
			return nil, err
		}
		if to[i] < 0 {
			return nil, fmt.Errorf("enum symbol %d is not in the reader's schema", i)
		}
		return appendLong(out, int64(to[i])), nil
	}
}

func (r *resolver) fixed(path string, reader, writer *node) step {
	if reader.size != writer.size {
		return r.problem(path, "fixed %s changed from %d to %d bytes", reader.name, writer.size, reader.size)
	}
	if !sameName(reader, writer) {
		r.problem(path, "fixed renamed from %s to %s", writer.name, reader.name)
	}
	return copyValue(writer)
}

// source defines where a field of the reader comes from.
type source struct {
	field int  // index in the writer's schema; -1: none
	step  step // rewrites that field
	def   []byte
}

func (r *resolver) record(path string, reader, writer *node) step {
	if again, ok := r.steps[pair{reader, writer}]; ok {
		return func(in *cursor, out []byte) ([]byte, error) { return (*again)(in, out) }
	}
	s := new(step)
	r.steps[pair{reader, writer}] = s
	if !sameName(reader, writer) {
		r.problem(path, "record renamed from %s to %s", writer.name, reader.name)
	}
	sources := convert.All(reader.fields, func(f field) source { return r.source(join(path, f.name), f, writer) })
	*s = fromSources(sources, writer)
	return *s
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (r *resolver) source(path string, f field, writer *node) source {
	i := slices.IndexFunc(writer.fields, func(w field) bool { return w.name == f.name })
	if i < 0 {
		i = slices.IndexFunc(writer.fields, func(w field) bool { return slices.Contains(f.aliases, w.name) })
	}
	if i >= 0 {
		return source{field: i, step: r.resolve(path, f.node, writer.fields[i].node)}
	}
	if f.def == nil {
		return source{field: -1, step: r.problem(path, "new field without a default")}
	}
	return source{field: -1, def: f.def}
}

// fromSources reads the writer's record once to find the start of each field. It then appends the reader's fields in the
// reader's order.
func fromSources(sources []source, writer *node) step {
	return func(in *cursor, out []byte) ([]byte, error) {
		if in.depth == maxDepth {
			return nil, errDeep
		}
		in.depth++
		defer func() { in.depth-- }()
		starts := make([]int, len(writer.fields))
		for i, f := range writer.fields {
			starts[i] = in.pos
			if err := in.walk(f.node); err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return appendSources(sources, starts, in, out)
	}
}

func appendSources(sources []source, starts []int, in *cursor, out []byte) ([]byte, error) {
	var err error
	for _, s := range sources {
		if s.step == nil {
			out = append(out, s.def...)
			continue
		}
		at := *in
		if s.field >= 0 {
			at.pos = starts[s.field]
		}
		if out, err = s.step(&at, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// appendLong appends a zig-zag encoded number.
func appendLong(out []byte, v int64) []byte {
	return binary.AppendUvarint(out, uint64(v<<1)^uint64(v>>63))
}
