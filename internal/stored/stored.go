// Package stored has the common parts of all stores on Pebble: opening a store of one format, reading a row, closing a
// database in use, and logging.
package stored

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// Row returns a copy of the row with the key, or nil if there is none. An empty row is not nil.
func Row(r pebble.Reader, key []byte) ([]byte, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return append(make([]byte, 0, len(value)), value...), closer.Close()
}
