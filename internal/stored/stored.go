// Package stored has the common parts of all stores on Pebble: opening a store of one format, reading a row, closing a
// database in use, and logging.
package stored

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// Row returns a copy of the row with the key, or nil if there is none. An empty row is not nil.
func Row(r pebble.Reader, key []byte) (row []byte, err error) {
	_, err = Read(r, key, func(value []byte) error {
		row = append(make([]byte, 0, len(value)), value...)
		return nil
	})
	return row, err
}

// Read calls f with the row with the key, which is valid until f returns. It reports whether there is one.
func Read(r pebble.Reader, key []byte, f func(row []byte) error) (found bool, err error) {
	row, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, errors.Join(f(row), closer.Close())
}
