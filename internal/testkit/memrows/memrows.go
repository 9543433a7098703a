// Package memrows provides an in-memory table of rows, for tests of code that reads and writes the rows of one owner.
package memrows

import (
	"bytes"
	"maps"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
)

// Table is a table in memory. It implements rows.Owner.
type Table map[string][]byte

func (m Table) Get(row []byte) ([]byte, error) { return m[string(row)], nil }

func (m Table) Put(row, value []byte) { m[string(row)] = slices.Clone(value) }

func (m Table) Delete(row []byte) { delete(m, string(row)) }

func (m Table) Scan(s rows.Scan, visit func(row, value []byte) bool) error {
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
