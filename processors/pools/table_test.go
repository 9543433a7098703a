package pools

import (
	"bytes"
	"maps"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
)

// memory is a table without a store.
type memory map[string][]byte

func (m memory) Get(row []byte) ([]byte, error) { return m[string(row)], nil }

func (m memory) Put(row, value []byte) error {
	m[string(row)] = slices.Clone(value)
	return nil
}

func (m memory) Delete(row []byte) error {
	delete(m, string(row))
	return nil
}

func (m memory) Scan(s rows.Scan, visit func(row, value []byte) bool) error {
	names := slices.Sorted(maps.Keys(m))
	if s.Reverse {
		slices.Reverse(names)
	}
	visited := 0
	for _, name := range names {
		row := []byte(name)
		order := bytes.Compare(row, s.From)
		if !bytes.HasPrefix(row, s.Prefix) || s.From != nil && (order < 0) != s.Reverse && order != 0 {
			continue
		}
		if visited++; s.Limit > 0 && visited > s.Limit || !visit(row, m[name]) {
			break
		}
	}
	return nil
}
