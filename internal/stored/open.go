package stored

import (
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
)

// Format is the version of a store's keys and rows.
type Format struct {
	Version byte
	Remedy  string // instruction to the operator for a store of another version
}

// formatKey is the reserved key of the row with the version.
const formatKey = "v"

// Open opens the database in dir, and creates it if necessary. It returns an error if another process has it open, if its
// files are damaged, or if its rows have another format.
func Open(dir string, format Format, options *pebble.Options) (*pebble.DB, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	db, err := pebble.Open(dir, options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := format.claim(db); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), db.Close())
	}
	return db, nil
}

// claim writes the version to an empty database, and otherwise compares the versions.
func (f Format) claim(db *pebble.DB) error {
	found, err := Row(db, []byte(formatKey))
	if err != nil {
		return fmt.Errorf("read the format version: %w", err)
	}
	if found == nil {
		empty, err := isEmpty(db)
		if err != nil {
			return fmt.Errorf("read the format version: %w", err)
		}
		if empty {
			return db.Set([]byte(formatKey), []byte{f.Version}, pebble.Sync)
		}
	}
	if string(found) != string([]byte{f.Version}) {
		return fmt.Errorf("rows have format version %v, want [%d]: %s", found, f.Version, f.Remedy)
	}
	return nil
}

func isEmpty(db *pebble.DB) (bool, error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return false, err
	}
	empty := !it.First()
	return empty, it.Close()
}
