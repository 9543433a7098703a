package rows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/lovoo/goka/storage"
)

// store is the local copy of one partition of a table, in Pebble. It implements Goka's storage.Storage: Goka fills it from
// the changelog, in batches of recoveryBytes, and never reads it. Every batch contains the changelog offset that it reaches.
// Rows that a crash removes are read again from there.
type store struct {
	storage.Storage // nil: Goka calls only the methods below; callbacks and views read the rows directly

	dir        string
	identity   identity
	end        int64 // end offset of the changelog when the store was opened
	opened     time.Time
	latestEnd  func() int64 // of a standby: the last known end offset of its changelog
	log        *slog.Logger
	read       *tally // counts changelog records
	lock       *pebble.Lock
	fs         vfs.FS
	db         *pebble.DB
	recoveries *recoveries
	offset     atomic.Int64 // changelog offset up to which the rows are stored; written under mu

	mu        sync.Mutex // guards the fields below; held during writes to disk
	buffer    *pebble.Batch
	order     []keyed   // scratch space of apply, reused
	loggedAt  time.Time // when progress was last logged
	closed    bool
	skipFlush bool // Close does not write what is in memory

	completeAt time.Time // when the store last contained the whole changelog

	damage     atomic.Pointer[error] // the first sign of a damaged file: Close then deletes the files
	writeError atomic.Pointer[error] // the first write that the disk refused: no more is written
}

const (
	recoveryBytes       = 1 << 20
	offsetNone    int64 = -1
)

// damaged records that files are damaged.
func (s *store) damaged(err error) {
	if s.damage.CompareAndSwap(nil, &err) {
		s.log.Error("store: damaged file", "dir", s.dir, "error", err)
	}
}

// backgroundError records that a flush or compaction has failed. Pebble retries it forever and keeps the rows in memory.
func (s *store) backgroundError(err error) {
	if _, ok := errors.AsType[syscall.Errno](err); !ok {
		s.log.Warn("store: flush or compaction failed", "dir", s.dir, "error", err)
		return
	}
	if s.writeError.CompareAndSwap(nil, &err) {
		s.log.Error("store: the disk refuses writes", "dir", s.dir, "error", err)
	}
}

// writable returns a *DiskError if the disk has refused a write.
func (s *store) writable() error {
	if err := s.writeError.Load(); err != nil {
		return &DiskError{s.dir, fmt.Errorf("refuses writes: %w: repair the disk", *err)}
	}
	return nil
}

// check records corruption if err reports it, and returns err.
func (s *store) check(err error) error {
	if err != nil && pebble.IsCorruptionError(err) {
		s.damaged(err)
	}
	return err
}

// Open implements storage.Storage. The store is already open.
func (s *store) Open() error { return nil }

// Set puts a row while Goka reads the changelog.
func (s *store) Set(key string, value []byte) error { return s.fill(key, value, false) }

// Delete removes a row while Goka reads the changelog.
func (s *store) Delete(key string) error { return s.fill(key, nil, true) }

func (s *store) fill(key string, value []byte, deleted bool) error {
	if isLocal(key) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.buffer == nil {
		s.buffer = s.db.NewBatchWithSize(recoveryBytes + recoveryBytes/8)
	}
	return putRow(s.buffer, key, value, deleted)
}

// putRow adds a put or a deletion to a batch. It copies the bytes once.
func putRow[K string | []byte](b *pebble.Batch, key K, value []byte, deleted bool) error {
	if deleted {
		op := b.DeleteDeferred(len(key))
		copy(op.Key, key)
		return op.Finish()
	}
	op := b.SetDeferred(len(key), len(value))
	copy(op.Key, key)
	copy(op.Value, value)
	return op.Finish()
}

// GetOffset returns the changelog offset of the last record in the store, or def if the store is empty.
func (s *store) GetOffset(def int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.offset.Load(); at != offsetNone {
		return at, nil
	}
	return def, nil
}

// SetOffset sets the offset of the record that was put or deleted last.
func (s *store) SetOffset(offset int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.offset.Store(offset)
	s.read.count(1)
	if s.buffer == nil || s.buffer.Len() < recoveryBytes {
		return nil
	}
	if s.recoveries.remaining(s, s.end-offset); s.recoveries.enabled() {
		return s.flush()
	}
	if now := time.Now(); now.Sub(s.loggedAt) > progressEvery {
		s.loggedAt = now
		s.log.Info("recovering", "partition", s.identity.Partition, "offset", offset, "end", s.end)
	}
	return s.flush()
}

// progressEvery is how often a long recovery logs its progress.
const progressEvery = 5 * time.Second

// progress returns the changelog offset of the store, and the end offset when it was opened. It does not wait for a disk
// that hangs.
func (s *store) progress() (offset, end int64) { return s.offset.Load(), s.end }

// MarkRecovered writes the last rows that Goka has read. Goka also calls it when a recovery was interrupted. In that case,
// the store may lack deletions and does not count as complete.
func (s *store) MarkRecovered() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed { // or was never opened
		return errClosed
	}
	s.recoveries.remaining(s, 0)
	if s.offset.Load() >= s.end-1 {
		s.completeAt = s.opened
	}
	return s.flush()
}

// flush writes the collected rows with their offset. mu is held.
func (s *store) flush() error {
	offset := s.offset.Load()
	if offset == offsetNone {
		return nil
	}
	if s.latestEnd != nil && offset >= s.latestEnd()-1 {
		s.completeAt = time.Now()
	}
	b := s.buffer
	s.buffer = nil
	if b == nil {
		b = s.db.NewBatch()
	}
	return s.commit(b, offset)
}

// commit writes a batch and closes it. It adds the changelog offset of the last row and the time when the store was
// complete.
func (s *store) commit(b *pebble.Batch, offset int64) error {
	if err := s.writable(); err != nil {
		return errors.Join(err, b.Close())
	}
	var value [16]byte
	binary.BigEndian.PutUint64(value[:], uint64(offset))
	binary.BigEndian.PutUint64(value[8:], uint64(s.completeAt.UnixMicro()))
	err := b.Set(reservedKey(offsetKind), value[:], nil)
	if err == nil {
		err = b.Commit(pebble.NoSync)
	}
	if err := errors.Join(s.check(err), b.Close()); err != nil {
		return fmt.Errorf("write store %s: %w", s.dir, err)
	}
	return nil
}

// apply writes the rows of a committed batch. offset is that of its last changelog record.
func (s *store) apply(b *batch, offset int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	out := s.db.NewBatchWithSize(len(b.data) + 16*len(b.writes) + 64)
	s.order = b.inOrder(s.order[:0])
	if err := b.copyTo(out, s.order); err != nil {
		return errors.Join(fmt.Errorf("write store %s: %w", s.dir, err), out.Close())
	}
	s.offset.Store(offset)
	s.completeAt = time.Now() // there is no other writer
	return s.commit(out, offset)
}

func (b *batch) copyTo(out *pebble.Batch, order []keyed) error {
	for i := range order {
		w := &b.writes[order[i].write]
		if err := putRow(out, b.at(w.key), b.at(w.value), w.deleted); err != nil {
			return err
		}
	}
	return nil
}

var errClosed = errors.New("local store is closed")

// Close flushes and closes the store, and deletes a damaged one. It can be called again.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.recoveries.remaining(s, 0)
	if s.buffer != nil && !s.skipFlush {
		if err := s.flush(); err != nil {
			s.log.Warn("local store: last rows not written, to be read again from the changelog", "dir", s.dir, "error", err)
		}
	}
	if s.damage.Load() == nil && s.writeError.Load() == nil && !s.skipFlush { // a flush would wait until the disk accepts writes
		if err := s.check(s.db.Flush()); err != nil {
			s.log.Warn("local store: not flushed, last rows to be read again from the changelog", "dir", s.dir, "error", err)
		}
	}
	err := s.check(s.db.Close())
	if s.damage.Load() != nil {
		s.log.Warn("local store removed, to be rebuilt from the changelog", "dir", s.dir, "error", *s.damage.Load())
		err = clearStore(s.dir)
	}
	if err := errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("close store %s: %w", s.dir, err)
	}
	return nil
}

// discardUnflushed makes Close drop all rows that are only in memory, as a crash would.
func (s *store) discardUnflushed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipFlush = true
}
