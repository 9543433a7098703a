package stored

import (
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// DB is a Pebble database that may be closed while others use it. Its methods may be called from any number of goroutines.
type DB struct {
	closed error

	mu sync.RWMutex // held for reading while db is used
	db *pebble.DB   // nil: closed
}

// Guard returns db as a DB, whose Use fails with the error closed once it is closed. Only the DB closes db from then on.
func Guard(db *pebble.DB, closed error) *DB { return &DB{db: db, closed: closed} }

// Use calls f with the database, which stays open meanwhile, and returns its error.
func (d *DB) Use(f func(db *pebble.DB) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.db == nil {
		return d.closed
	}
	return f(d.db)
}

// Close closes the database when all calls of Use under way have returned. Further Close does nothing.
func (d *DB) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.db == nil {
		return nil
	}
	db := d.db
	d.db = nil
	return db.Close()
}

// Logger hands what Pebble says of a store to log, the store's name before it; what is no error at debug level.
func Logger(log *slog.Logger, name string) pebble.Logger { return logger{log, name} }

type logger struct {
	log  *slog.Logger
	name string
}

// Infof logs at debug level.
func (l logger) Infof(format string, args ...any) { l.log.Debug(l.line(format, args)) }

// Errorf logs an error.
func (l logger) Errorf(format string, args ...any) { l.log.Error(l.line(format, args)) }

// Fatalf ends the process, as Pebble demands: its log or its manifest cannot be written (disk full, read-only), and what is in
// memory may then not be taken for stored. What a store acknowledged is on disk, or else in Kafka; no offset is committed
// past an unfinished write, so the next start goes on from there.
func (l logger) Fatalf(format string, args ...any) {
	l.log.Error(l.line("the process ends: "+format, args))
	os.Exit(1)
}

func (l logger) line(format string, args []any) string {
	return l.name + ": " + fmt.Sprintf(format, args...)
}
