package rows

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/lovoo/goka/storage"
)

// store is the local copy of one partition of a table, in Pebble. It implements Goka's storage.Storage: Goka fills it
// from the changelog, in batches of recoveryBytes, and never reads it. Every batch holds the changelog offset up to
// which the rows are true, so that whatever a crash takes away is read again.
type store struct {
	dir  string
	who  identity
	end  int64 // of the changelog when the store was opened
	log  *slog.Logger
	read *tally // changelog records
	lock *pebble.Lock
	fs   vfs.FS
	db   *pebble.DB
	show *recoveries

	mu     sync.Mutex // guards what follows
	filled *pebble.Batch
	offset int64
	told   time.Time // when progress was logged last
	closed bool
	drop   bool // Close leaves what is in memory unwritten

	damage  atomic.Pointer[error] // the first sign that files are damaged: Close then removes them
	refused atomic.Pointer[error] // the first write that the disk refused: nothing more is written
}

const (
	recoveryBytes       = 1 << 20
	offsetNone    int64 = -1
)

// identity says whose store a directory holds. A store of another one is removed, not read.
type identity struct {
	Format    int    `json:"format"` // of rows and reserved rows, storeFormat
	Cluster   string `json:"cluster"`
	Topic     string `json:"topic"`
	TopicID   string `json:"topic_id"`
	Partition int32  `json:"partition"`
}

const storeFormat = 1

var (
	errForeign = errors.New("store of another topic, partition or cluster")
	errAhead   = errors.New("store holds more than the changelog")
)

// openStore opens a partition's store, whose changelog ends at end. One that is damaged, not this partition's or ahead
// of the log is removed, and an empty one is opened in its place: the changelog has all of it.
func (r *Runner) openStore(who identity, end int64) (*store, error) {
	dir := filepath.Join(r.cfg.Dir, who.Topic, strconv.Itoa(int(who.Partition)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	lock, err := pebble.LockDirectory(dir, r.fs)
	if err != nil { // held by this process, by another, or the disk: it says nothing of what is in the store
		return nil, fmt.Errorf("lock store %s, which one process may use at a time: %w", dir, err)
	}
	s, err := r.tryStore(dir, lock, who, end)
	if err != nil && ofStore(err) {
		r.log.Warn("local store removed, to be rebuilt from the changelog", "dir", dir, "reason", err)
		if err = clearStore(dir); err == nil {
			s, err = r.tryStore(dir, lock, who, end)
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.show.left(s, s.end-s.offset)
	return s, nil
}

// lockFile is Pebble's, in a store's directory.
const lockFile = "LOCK"

// clearStore removes what is in a store's directory but for the lock, which this process holds.
func clearStore(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("remove store: %w", err)
	}
	for _, e := range entries {
		if e.Name() == lockFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove store: %w", err)
		}
	}
	return nil
}

// ofStore tells whether an error of opening is the store's own fault, and not that of the disk.
// Pebble does not mark all damage as such; but what the system refuses has the system's error, and a missing file is
// damage.
func ofStore(err error) bool {
	var system syscall.Errno
	return !errors.As(err, &system) || system == syscall.ENOENT
}

// tryStore opens the store as it is. Its Close gives the lock back.
func (r *Runner) tryStore(dir string, lock *pebble.Lock, who identity, end int64) (*store, error) {
	s := &store{
		dir: dir, who: who, end: end, lock: lock, fs: r.fs, show: &r.shared.recoveries, log: r.log, read: r.meter.recovered, offset: offsetNone, told: time.Now(),
	}
	options := s.options(r.shared)
	options.Lock = lock
	db, err := pebble.Open(dir, options)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	s.db = db
	if err := errors.Join(s.claim(), s.loadOffset()); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, err), db.Close())
	}
	return s, nil
}

// damaged notes that files are damaged.
func (s *store) damaged(err error) {
	if s.damage.CompareAndSwap(nil, &err) {
		s.log.Error("store: damaged file", "dir", s.dir, "error", err)
	}
}

// failed notes that a flush or compaction has failed. Pebble tries again for ever, with what is in memory waiting.
func (s *store) failed(err error) {
	var system syscall.Errno
	if !errors.As(err, &system) {
		s.log.Warn("store: background work failed", "dir", s.dir, "error", err)
		return
	}
	if s.refused.CompareAndSwap(nil, &err) {
		s.log.Error("store: the disk refuses writes", "dir", s.dir, "error", err)
	}
}

// writable fails once the disk has refused a write.
func (s *store) writable() error {
	if err := s.refused.Load(); err != nil {
		return &DiskError{Dir: s.dir, Err: *err}
	}
	return nil
}

// check notes damage that a read or write has met, and returns its error.
func (s *store) check(err error) error {
	if err != nil && pebble.IsCorruptionError(err) {
		s.damaged(err)
	}
	return err
}

// claim marks an empty store as who's, or holds its mark against who.
func (s *store) claim() error {
	want, err := json.Marshal(s.who)
	if err != nil {
		return err
	}
	key := reservedKey(markerKind)
	have, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		if err := s.empty(); err != nil {
			return err
		}
		return s.db.Set(key, want, pebble.NoSync)
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	if string(have) != string(want) {
		return fmt.Errorf("%w: it is %s, not %s", errForeign, have, want)
	}
	return nil
}

// empty fails if there is anything in the store.
func (s *store) empty() error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	if it.First() {
		err = fmt.Errorf("%w: it has rows and no mark", errForeign)
	}
	return errors.Join(err, it.Close())
}

func (s *store) loadOffset() error {
	value, closer, err := s.db.Get(reservedKey(offsetKind))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	if len(value) != 8 {
		return fmt.Errorf("%w: offset of %d bytes", errForeign, len(value))
	}
	s.offset = int64(binary.BigEndian.Uint64(value))
	if s.offset >= s.end {
		return fmt.Errorf("%w: offset %d, and it ends at %d", errAhead, s.offset, s.end)
	}
	return nil
}

// Open is part of storage.Storage: the store is open already.
func (s *store) Open() error { return nil }

// Set puts a row while Goka reads the changelog.
func (s *store) Set(key string, value []byte) error {
	if isLocal(key) {
		return nil
	}
	return s.fill(func(b *pebble.Batch) error {
		op := b.SetDeferred(len(key), len(value))
		copy(op.Key, key)
		copy(op.Value, value)
		return op.Finish()
	})
}

// Delete removes a row while Goka reads the changelog.
func (s *store) Delete(key string) error {
	if isLocal(key) {
		return nil
	}
	return s.fill(func(b *pebble.Batch) error {
		op := b.DeleteDeferred(len(key))
		copy(op.Key, key)
		return op.Finish()
	})
}

func (s *store) fill(write func(*pebble.Batch) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.filled == nil {
		s.filled = s.db.NewBatchWithSize(recoveryBytes + recoveryBytes/8)
	}
	return write(s.filled)
}

// GetOffset returns the changelog offset of the last record in the store, def if there is none.
func (s *store) GetOffset(def int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offset == offsetNone {
		return def, nil
	}
	return s.offset, nil
}

// SetOffset notes the offset of the record that was put or deleted last.
func (s *store) SetOffset(offset int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset = offset
	s.read.count(1)
	if s.filled == nil || s.filled.Len() < recoveryBytes {
		return nil
	}
	if s.show.left(s, s.end-offset); s.show.shown() {
		return s.flush()
	}
	if now := time.Now(); now.Sub(s.told) > progressEvery {
		s.told = now
		s.log.Info("recovering", "partition", s.who.Partition, "offset", offset, "end", s.end)
	}
	return s.flush()
}

// progressEvery is how often a long recovery says how far it is.
const progressEvery = 5 * time.Second

// progress returns the changelog offset up to which the rows are here, and the end when the store was opened.
func (s *store) progress() (offset, end int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offset, s.end
}

// MarkRecovered writes what Goka has read last.
func (s *store) MarkRecovered() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show.left(s, 0)
	if s.closed {
		return errClosed
	}
	return s.flush()
}

// flush writes the gathered rows with their offset. mu is held.
func (s *store) flush() error {
	if s.offset == offsetNone {
		return nil
	}
	b := s.filled
	s.filled = nil
	if b == nil {
		b = s.db.NewBatch()
	}
	return s.commit(b, s.offset)
}

// commit writes a batch with the changelog offset of its last row, and closes it.
func (s *store) commit(b *pebble.Batch, offset int64) error {
	if err := s.writable(); err != nil {
		return errors.Join(err, b.Close())
	}
	var value [8]byte
	binary.BigEndian.PutUint64(value[:], uint64(offset))
	err := b.Set(reservedKey(offsetKind), value[:], nil)
	if err == nil {
		err = b.Commit(pebble.NoSync)
	}
	if err := errors.Join(s.check(err), b.Close()); err != nil {
		return fmt.Errorf("write store %s: %w", s.dir, err)
	}
	return nil
}

// apply writes the rows of a committed batch, whose last changelog record has the given offset.
func (s *store) apply(b *batch, offset int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	out := s.db.NewBatchWithSize(len(b.data) + 16*len(b.writes) + 64)
	for i := range b.writes {
		if err := b.copyTo(out, &b.writes[i]); err != nil {
			return errors.Join(fmt.Errorf("write store %s: %w", s.dir, err), out.Close())
		}
	}
	s.offset = offset
	return s.commit(out, offset)
}

func (b *batch) copyTo(out *pebble.Batch, w *write) error {
	switch {
	case w.replaced:
		return nil
	case w.deleted:
		op := out.DeleteDeferred(int(w.key.len))
		copy(op.Key, b.at(w.key))
		return op.Finish()
	default:
		op := out.SetDeferred(int(w.key.len), int(w.value.len))
		copy(op.Key, b.at(w.key))
		copy(op.Value, b.at(w.value))
		return op.Finish()
	}
}

var errClosed = errors.New("local store is closed")

// Close flushes what is in memory, and closes the store; a damaged one is removed. It can be called again.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.show.left(s, 0)
	if s.filled != nil && !s.drop {
		if err := s.flush(); err != nil {
			s.log.Warn("local store: last rows not written, to be read again", "dir", s.dir, "error", err)
		}
	}
	if s.damage.Load() == nil && s.refused.Load() == nil && !s.drop { // a flush would wait for a disk that takes writes
		if err := s.check(s.db.Flush()); err != nil {
			s.log.Warn("local store: not flushed, to be read again", "dir", s.dir, "error", err)
		}
	}
	err := s.check(s.db.Close())
	if s.damage.Load() != nil {
		s.log.Warn("local store removed, to be rebuilt from the changelog", "dir", s.dir, "reason", *s.damage.Load())
		err = clearStore(s.dir)
	}
	if err := errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("close store %s: %w", s.dir, err)
	}
	return nil
}

// unflushed has Close leave the store as a crash would.
func (s *store) unflushed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop = true
}

// The rest of storage.Storage is never called: callbacks and views read the rows directly.
var errNotGoka = errors.New("rows are not read through goka")

// Has is not used.
func (s *store) Has(string) (bool, error) { return false, errNotGoka }

// Get is not used.
func (s *store) Get(string) ([]byte, error) { return nil, errNotGoka }

// Iterator is not used.
func (s *store) Iterator() (storage.Iterator, error) { return nil, errNotGoka }

// IteratorWithRange is not used.
func (s *store) IteratorWithRange(_, _ []byte) (storage.Iterator, error) { return nil, errNotGoka }
