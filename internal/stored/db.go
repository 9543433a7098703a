package stored

import (
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// DB is a Pebble database that can be closed while it is used. It is safe for concurrent use.
type DB struct {
	closed error

	mu sync.RWMutex // held for reading while db is used
	db *pebble.DB   // nil: closed
}

// Guard returns a DB for db, which the caller must no longer close. After Close, Use returns the error closed.
func Guard(db *pebble.DB, closed error) *DB { return &DB{db: db, closed: closed} }

// Use calls f with the database, which stays open during the call, and returns the error of f.
func (d *DB) Use(f func(db *pebble.DB) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.db == nil {
		return d.closed
	}
	return f(d.db)
}

// Close waits for calls of Use in flight, and closes the database. Further calls do nothing.
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

// Logger returns a logger that writes Pebble's messages to log, with the store's name. Messages other than errors are
// logged at debug level.
func Logger(log *slog.Logger, name string) pebble.Logger { return logger{log, name} }

type logger struct {
	log  *slog.Logger
	name string
}

// Infof logs at debug level.
func (l logger) Infof(format string, args ...any) { l.log.Debug(l.line(format, args)) }

// Errorf logs an error.
func (l logger) Errorf(format string, args ...any) { l.log.Error(l.line(format, args)) }

// Fatalf exits the process, as Pebble requires: it cannot write its log or its manifest (disk full, read-only), and the
// data in memory may not be durable. Acknowledged data is on disk or in Kafka, and no committed offset is past an
// unfinished write. The next start resumes there.
func (l logger) Fatalf(format string, args ...any) {
	l.log.Error(l.line("exiting: "+format, args))
	os.Exit(1)
}

func (l logger) line(format string, args []any) string {
	return l.name + ": " + fmt.Sprintf(format, args...)
}
