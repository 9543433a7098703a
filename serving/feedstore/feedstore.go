// Package feedstore is the embedded feed store. It keeps the data of feed answers on a local disk: materialized feeds,
// edges, the current state of pins, and the lists of followees' publications.
//
//	entry     user, position ↓         an item of a materialized feed, or an empty row in place of a swept one
//	trimmed   user                     positions at or below it were trimmed
//	edge      user, other, kind        the state of one register
//	card      pin                      the newest version: facets, title, link, deleted or not
//	place     followee, created ↓, pin the current or a previous place of a pin in the followee's list
//	listing   followee, pin            the newest version published for the followee; determines the place
//	deleted   user                     a permanently deleted user
//
// Every row is a register: its value starts with a rank, and of two values written to one key, the greater remains. A write
// reads nothing. Therefore a repeated write changes nothing, and any order of the same writes leads to the same rows. A
// Cassandra table does the same with USING TIMESTAMP.
//
// Erased data is the exception: an edge with Erased set, and all rows of a user in Batch.Erased (feed, edges and list).
// These rows are deleted when the batch is written, and writers must not write them again. The suite of package conformance
// states the remaining requirements, and every implementation passes it.
//
// Deletion. The following deletes each kind of rows, by the first byte of their keys. An erasure deletes all rows of the
// user.
//
//	'f'  entries    cap: MaxItems plus a tenth, by ranges; erasure
//	't'  trimmed    erasure; one for each user
//	'e'  edges      erasure of either side; a dead edge stays, because an older state may be written again
//	'c'  cards      never: feeds and candidates refer to a deleted pin without a time limit, and its card hides the pin there; the
//	                card of a deleted pin has its version, creation time and quality, but no text
//	'l'  places     erasure of the followee; the place of a deleted pin stays (20 bytes plus ids), and reads skip it: in
//	                Cassandra, its tombstone would slow down every page
//	'p'  listings   erasure of the followee; the version of a deleted pin stays, because an older one may be written again
//	'g'  deleted    never: a delete is final
//
// After Write has returned nil, the batch is on disk and survives a kill of the process.
package feedstore

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/schemas"
)

// format is the version of the layout of keys and values. Open rejects a directory with another format.
const format = 2

// remedy is what an operator does with a store of another format.
const remedy = `stop the process, delete the directory, and run "smartfeed feed-store refill": the next start fills the store from the topics`

// Config configures a Store. See DefaultConfig.
type Config struct {
	// A feed is trimmed each time it has grown by a tenth of MaxItems, so it holds up to a tenth more.
	MaxItems        int            `yaml:"max_items" default:"2000" range:"10.." help:"maximum number of items of a materialized feed"`
	BlockCacheBytes settings.Bytes `yaml:"block_cache_bytes" default:"64MiB" range:"1MiB.." help:"size of the block cache"`
	MemtableBytes   settings.Bytes `yaml:"memtable_bytes" default:"16MiB" range:"1MiB..1GiB" help:"size of a memtable; up to four are in memory"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every field that is out of bounds.
func (c Config) Validate() error { return settings.Validate(c) }

// Batch is the content of one Write.
type Batch = schemas.FeedBatch

// Store is the embedded feed store. Its methods are safe for concurrent use.
type Store struct {
	db   *pebble.DB
	trim Trimming
}

// Open opens the store in dir, or creates an empty one. It returns an error if another process has the store open, if the
// store has another format, or if its files are damaged.
func Open(dir string, cfg Config, log *slog.Logger) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("feed store: %w", err)
	}
	cache := pebble.NewCache(int64(cfg.BlockCacheBytes))
	defer cache.Unref() // the database holds its own reference
	db, err := stored.Open(dir, stored.Format{Version: format, Remedy: remedy}, options(cfg, cache, log))
	if err != nil {
		return nil, fmt.Errorf("open feed store: %w", err)
	}
	return &Store{db: db, trim: NewTrimming(cfg.MaxItems)}, nil
}

// Close closes the files. All reads and writes must have returned. Acknowledged writes survive without Close.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close feed store: %w", err)
	}
	return nil
}
