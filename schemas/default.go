package schemas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// maxDefaults is the maximum number of values in the defaults of all fields of one reader. A few hundred bytes can define
// any number: a record of two fields of the next record, each with the default {}, and so on.
const maxDefaults = 1 << 16

var errDefaults = errors.New("defaults of too many values")

// defaults appends defaults of a reader's fields.
type defaults struct {
	values int // appended so far
	depth  int // of the current default
}

// append appends a default of schema n, given as decoded JSON.
func (d *defaults) append(out []byte, n *node, def any) ([]byte, error) {
	d.values++
	switch {
	case d.values > maxDefaults:
		return nil, errDefaults
	case len(out) > maxResolvedBytes:
		return nil, errBig
	case d.depth == maxDepth:
		return nil, errDeep
	}
	d.depth++
	defer func() { d.depth-- }()
	switch def := def.(type) {
	case []any:
		if n.kind == kindArray {
			return d.array(out, n, def)
		}
	case map[string]any:
		switch n.kind {
		case kindRecord:
			return d.record(out, n, def)
		case kindMap:
			return d.mapping(out, n, def)
		}
	}
	if n.kind == kindUnion && len(n.branches) > 0 { // a default is a value of the first branch
		return d.append(appendLong(out, 0), n.branches[0], def)
	}
	return appendDefault(out, n, def)
}

func (d *defaults) array(out []byte, n *node, items []any) ([]byte, error) {
	var err error
	for _, item := range items {
		if out, err = d.append(appendLong(out, 1), n.items, item); err != nil {
			return nil, err
		}
	}
	return appendLong(out, 0), nil
}

func (d *defaults) mapping(out []byte, n *node, entries map[string]any) ([]byte, error) {
	var err error
	for key, value := range entries {
		out = append(appendLong(appendLong(out, 1), int64(len(key))), key...)
		if out, err = d.append(out, n.items, value); err != nil {
			return nil, err
		}
	}
	return appendLong(out, 0), nil
}

func (d *defaults) record(out []byte, n *node, values map[string]any) ([]byte, error) {
	for _, f := range n.fields {
		value, ok := values[f.name]
		if !ok && !f.hasDefault {
			return nil, fmt.Errorf("%s: neither a value nor a default", f.name)
		}
		if !ok {
			value = f.def
		}
		var err error
		if out, err = d.append(out, f.node, value); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return out, nil
}

// appendDefault appends a default without nested values.
func appendDefault(out []byte, n *node, def any) ([]byte, error) {
	switch def := def.(type) {
	case nil:
		if n.kind == kindNull {
			return out, nil
		}
	case bool:
		switch {
		case n.kind == kindBoolean && def:
			return append(out, 1), nil
		case n.kind == kindBoolean:
			return append(out, 0), nil
		}
	case string:
		return appendDefaultText(out, n, def)
	case float64:
		return appendDefaultNumber(out, n, def)
	}
	return nil, noDefault(n, def)
}

// noDefault returns the error for a default that is not a value of schema n.
func noDefault(n *node, def any) error {
	return fmt.Errorf("%.64q is none of type %s", fmt.Sprint(def), n.label())
}

func appendDefaultText(out []byte, n *node, def string) ([]byte, error) {
	switch n.kind {
	case kindString:
		return append(appendLong(out, int64(len(def))), def...), nil
	case kindEnum:
		if i := slices.Index(n.symbols, def); i >= 0 {
			return appendLong(out, int64(i)), nil
		}
	case kindBytes:
		if b, ok := bytesOf(def); ok {
			return append(appendLong(out, int64(len(b))), b...), nil
		}
	case kindFixed:
		if b, ok := bytesOf(def); ok && len(b) == n.size {
			return append(out, b...), nil
		}
	}
	return nil, noDefault(n, def)
}

// bytesOf returns the bytes of a default of type bytes. Each character is the byte with its code point.
func bytesOf(def string) ([]byte, bool) {
	var b []byte
	for _, r := range def {
		if r > math.MaxUint8 {
			return nil, false
		}
		b = append(b, byte(r))
	}
	return b, true
}

func appendDefaultNumber(out []byte, n *node, def float64) ([]byte, error) {
	const ends = 1 << 63 // the first number above the range of a long
	whole := math.Trunc(def) == def && def >= -ends && def < ends
	switch {
	case n.kind == kindFloat:
		return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(def))), nil
	case n.kind == kindDouble:
		return binary.LittleEndian.AppendUint64(out, math.Float64bits(def)), nil
	case n.kind == kindLong && whole, n.kind == kindInt && whole && def >= math.MinInt32 && def <= math.MaxInt32:
		return appendLong(out, int64(def)), nil
	}
	return nil, noDefault(n, def)
}
