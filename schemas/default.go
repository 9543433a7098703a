package schemas

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// appendDefault appends a field's default, as the Avro library parsed it.
func appendDefault(out []byte, n *node, def any) ([]byte, error) {
	switch n.kind {
	case kindUnion: // the default is one of the first branch
		return appendDefault(appendLong(out, 0), n.branches[0], def)
	case kindRecord:
		return appendDefaultRecord(out, n, def)
	case kindArray:
		return appendDefaultArray(out, n, def)
	case kindMap:
		return appendDefaultMap(out, n, def)
	}
	switch v := def.(type) {
	case nil:
		if n.kind == kindNull {
			return out, nil
		}
	case bool:
		if v {
			return append(out, 1), nil
		}
		return append(out, 0), nil
	case string:
		return appendDefaultText(out, n, v)
	case []byte:
		return append(appendLong(out, int64(len(v))), v...), nil
	case int:
		return appendLong(out, int64(v)), nil
	case int64:
		return appendLong(out, v), nil
	case float32:
		return binary.LittleEndian.AppendUint32(out, math.Float32bits(v)), nil
	case float64:
		return binary.LittleEndian.AppendUint64(out, math.Float64bits(v)), nil
	}
	return nil, fmt.Errorf("%T for %s is not supported", def, n.label())
}

func appendDefaultText(out []byte, n *node, v string) ([]byte, error) {
	if n.kind == kindEnum {
		return appendLong(out, int64(slices.Index(n.symbols, v))), nil
	}
	return append(appendLong(out, int64(len(v))), v...), nil
}

func appendDefaultArray(out []byte, n *node, def any) ([]byte, error) {
	items, ok := def.([]any)
	if !ok {
		return nil, fmt.Errorf("%T for %s is not supported", def, n.label())
	}
	var err error
	for _, item := range items {
		if out, err = appendDefault(appendLong(out, 1), n.items, item); err != nil {
			return nil, err
		}
	}
	return appendLong(out, 0), nil
}

func appendDefaultMap(out []byte, n *node, def any) ([]byte, error) {
	entries, ok := def.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%T for %s is not supported", def, n.label())
	}
	var err error
	for key, value := range entries {
		out = append(appendLong(appendLong(out, 1), int64(len(key))), key...)
		if out, err = appendDefault(out, n.items, value); err != nil {
			return nil, err
		}
	}
	return appendLong(out, 0), nil
}

func appendDefaultRecord(out []byte, n *node, def any) ([]byte, error) {
	values, ok := def.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%T for %s is not supported", def, n.label())
	}
	var err error
	for _, f := range n.fields {
		value, ok := values[f.name]
		if !ok {
			value = f.def
		}
		if out, err = appendDefault(out, f.node, value); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return out, nil
}
