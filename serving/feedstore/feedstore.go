// Package feedstore keeps, on one machine's disk, what answers are made of: frozen feeds, who may see what, the
// present state of pins, and the lists of what a followee published.
//
//	entry     user, position ↓         an item of a frozen feed, or an empty row where one was swept
//	floor     user                     positions at or below it were trimmed
//	edge      user, other, kind        the state of one register
//	card      pin                      the newest version: facets, title, link, deleted or not
//	place     followee, created ↓, pin where a pin stands in the followee's list, now or formerly
//	listing   followee, pin            the newest version that the followee was told of; decides the place
//	gone      user                     deleted for good
//
// Every row is a register: its value begins with a rank, and of two values written under one key the greater stays.
// Nothing is read in order to write. So a repeated write changes nothing, and any order of the same writes ends in
// the same rows; a Cassandra table does the same with USING TIMESTAMP. The exception is what is erased: an edge that says
// so, and everything under a user of Batch.Erased, feed, edges and list. It is gone when the batch is written, and whoever
// writes puts nothing of it back. What a store must do beyond this text is in the
// suite of package conformance, which every implementation passes.
//
// Deletion. What deletes each kind of rows, by the first byte of their keys. An erasure deletes all rows under the user.
//
//	'f'  entries    cap: MaxFeed and a tenth, by ranges; erasure
//	't'  floors     erasure; one for each user
//	'e'  edges      erasure of either side; a dead one stays, because an older state may come again
//	'c'  cards      never: feeds and candidates refer to a deleted pin without an end, and the card hides it there; it has its
//	                version, creation and quality, and no text
//	'l'  places     erasure of the followee; a place of a deleted pin stays, 20 bytes and ids, and reads pass it by: in Cassandra
//	                its tombstone would be in the way of every page
//	'p'  listings   erasure of the followee; of a deleted pin the version stays, because an older one may come again
//	'g'  gone       never: a delete is final
//	'v'  format     never: one row
//
// A Write that returned nil is on disk: it survives the process being killed.
package feedstore

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/schemas"
)

// format numbers the layout of keys and values below. A directory of another format is refused, never guessed at.
const format = 1

// Config of a Store. See DefaultConfig.
type Config struct {
	// MaxFeed is how many items of a frozen feed are kept, default 2000, at least 10. A feed is trimmed each time it
	// has grown by a tenth of it, so it holds up to a tenth more.
	MaxFeed int `yaml:"max_feed"`
	// CacheBytes bounds the memory for blocks read from disk, default 64 MiB, at least 1 MiB.
	CacheBytes int64 `yaml:"cache_bytes"`
	// MemtableBytes bounds each of up to four tables of rows not yet in a sorted file, default 16 MiB, at least 1 MiB.
	MemtableBytes int64 `yaml:"memtable_bytes"`
}

// DefaultConfig returns the defaults of every field.
func DefaultConfig() Config {
	return Config{MaxFeed: 2000, CacheBytes: 64 << 20, MemtableBytes: 16 << 20}
}

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	problems := []error{bounds.Within("memtable_bytes", c.MemtableBytes, 1<<20, 1<<30)}
	if c.MaxFeed < 10 {
		problems = append(problems, fmt.Errorf("max_feed: %d: want at least 10", c.MaxFeed))
	}
	if c.CacheBytes < 1<<20 {
		problems = append(problems, fmt.Errorf("cache_bytes: %d: want at least %d", c.CacheBytes, 1<<20))
	}
	return errors.Join(problems...)
}

// Batch is what one Write brings, in any order and any number of times. It is an alias of an unnamed struct, so that a
// writer may declare the same struct under a name of its own and need not import this package.
type Batch = struct {
	Entries      []schemas.FeedEntry   // an empty Pin is an empty row: the item was swept
	Edges        []schemas.Edge        //
	Publications []schemas.Publication // list the pin, or take it off the list
	Cards        []schemas.Card        //
	Deleted      []schemas.DeletedUser //
	Erased       []schemas.DeletedUser // take away what is there under these users, but that they are gone; all of it is older than Time
}

// Store is the embedded feed store. Its methods may be called from any number of goroutines.
type Store struct {
	db   *pebble.DB
	trim Trimming
}

// Open opens the store in dir, or makes an empty one. It fails when another process has it open, when it was written in
// another format, and when its files are damaged.
func Open(dir string, cfg Config, log *slog.Logger) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("feed store: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open feed store: %w", err)
	}
	cache := pebble.NewCache(cfg.CacheBytes)
	defer cache.Unref() // the database holds its own reference
	db, err := pebble.Open(dir, options(cfg, cache, log))
	if err != nil {
		return nil, fmt.Errorf("open feed store %s: %w", dir, err)
	}
	if err := claimFormat(db); err != nil {
		return nil, errors.Join(fmt.Errorf("open feed store %s: %w", dir, err), db.Close())
	}
	return &Store{db: db, trim: NewTrimming(cfg.MaxFeed)}, nil
}

// Close waits for running reads' iterators to be closed by their owners and closes the files. Nothing acknowledged is
// lost without it.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close feed store: %w", err)
	}
	return nil
}

// claimFormat writes the format into a new database and compares it in an old one.
func claimFormat(db *pebble.DB) error {
	value, closer, err := db.Get(formatKey())
	if errors.Is(err, pebble.ErrNotFound) {
		return db.Merge(formatKey(), []byte{format}, pebble.Sync)
	}
	if err != nil {
		return fmt.Errorf("read format: %w", err)
	}
	defer closer.Close()
	if len(value) != 1 || value[0] != format {
		return fmt.Errorf("format %v: this program reads %d: move the directory away and replay the feed topics", value, format)
	}
	return nil
}
