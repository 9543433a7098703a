package rows

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/topics"
)

// identity identifies the partition that a store belongs to. A store with another identity is deleted, not read.
type identity struct {
	Format    int    `json:"format"` // of rows and reserved rows, storeFormat
	Cluster   string `json:"cluster"`
	Topic     string `json:"topic"`
	TopicID   string `json:"topic_id"`
	Partition int32  `json:"partition"`
}

const storeFormat = 2

// maxStoreOffline is the time that a local store may be offline. It catches up with deletions through the tombstones in the
// changelog, which are kept for a week. A day is reserved for recovery and clock differences.
const maxStoreOffline = topics.DeletionsKept - 24*time.Hour

var (
	errForeign = errors.New("store of another topic, partition or cluster")
	errStale   = errors.New("store was offline for longer than the changelog keeps deletions")
)

// openStore opens a partition's store, whose changelog ends at end. A store that is damaged, belongs to another partition or
// is too old to catch up is deleted. An empty store replaces it, because the changelog contains all rows. openStore returns
// a *FatalError when the store shows that the changelog has lost records.
func (r *Runner) openStore(id identity, end int64) (*store, error) {
	dir := filepath.Join(r.cfg.Dir, id.Topic, strconv.Itoa(int(id.Partition)))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	lock, err := pebble.LockDirectory(dir, r.fs)
	if err != nil { // in use by this or another process, or a disk error: the contents may be intact
		return nil, fmt.Errorf("lock store %s, which only one process can use at a time: %w", dir, err)
	}
	s, err := r.openExistingStore(dir, lock, id, end)
	switch {
	case errors.Is(err, errLost):
		err = lostChangelog(r.topo.base, "the directory "+dir, err)
	case err != nil && isStoreDamage(err):
		r.log.Warn("local store removed, to be rebuilt from the changelog", "dir", dir, "error", err)
		if err = clearStore(dir); err == nil {
			s, err = r.openExistingStore(dir, lock, id, end)
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.endsAt(end)
	return s, nil
}

// endsAt sets the end offset of the changelog, before recovery starts.
func (s *store) endsAt(end int64) {
	s.end = end
	s.recoveries.remaining(s, end-s.offset.Load())
}

// lockFile is the name of Pebble's lock file in a store's directory.
const lockFile = "LOCK"

// clearStore removes the contents of a store's directory except the lock file, which this process holds.
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

// isStoreDamage reports whether an error on opening is caused by the store's contents and not by the disk. Pebble does not mark
// all corruption as such. But errors of the operating system contain its error number, and a missing file is corruption.
func isStoreDamage(err error) bool {
	var system syscall.Errno
	return !errors.As(err, &system) || system == syscall.ENOENT
}

// openExistingStore opens the store in dir, which may be empty. Closing the store releases the lock.
func (r *Runner) openExistingStore(dir string, lock *pebble.Lock, id identity, end int64) (*store, error) {
	s := &store{
		dir: dir, identity: id, end: end, lock: lock, fs: r.fs, recoveries: &r.shared.recoveries, log: r.log, read: r.meter.recovered, loggedAt: time.Now(),
	}
	s.offset.Store(offsetNone)
	s.opened, s.completeAt = s.loggedAt, s.loggedAt // an empty store needs no deletions
	options := s.options(r.shared)
	options.Lock = lock
	db, err := pebble.Open(dir, options)
	if err != nil {
		options.Experimental.CompactionScheduler.Unregister() // Pebble does this only for a store that it closes
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	s.db = db
	if err = s.checkIdentity(); err == nil { // the offset of another partition is meaningless
		err = errors.Join(s.loadOffset(), s.checkAge(r.maxOffline))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, err), db.Close())
	}
	return s, nil
}

// checkIdentity writes the identity to an empty store, or compares it with the store's identity.
func (s *store) checkIdentity() error {
	want, err := json.Marshal(s.identity)
	if err != nil {
		return err
	}
	key := reservedKey(markerKind)
	have, err := stored.Row(s.db, key)
	switch {
	case err != nil:
		return err
	case have == nil:
		if err := s.checkEmpty(); err != nil {
			return err
		}
		return s.db.Set(key, want, pebble.NoSync)
	case s.recreated(have):
		return fmt.Errorf("%w: topic %s was recreated since the local store was written", errLost, s.identity.Topic)
	case string(have) != string(want):
		return fmt.Errorf("%w: it is %s, not %s", errForeign, have, want)
	}
	return nil
}

// recreated reports whether a store belongs to the same partition of an earlier topic with the same name.
func (s *store) recreated(mark []byte) bool {
	var of identity
	if json.Unmarshal(mark, &of) != nil || of.TopicID == s.identity.TopicID {
		return false
	}
	of.TopicID = s.identity.TopicID
	return of == s.identity
}

// checkEmpty returns an error if the store contains anything.
func (s *store) checkEmpty() error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	if it.First() {
		err = fmt.Errorf("%w: it has rows but no identity", errForeign)
	}
	return errors.Join(err, it.Close())
}

func (s *store) loadOffset() error {
	value, err := stored.Row(s.db, reservedKey(offsetKind))
	if err != nil || value == nil {
		return err
	}
	if len(value) != 16 {
		return fmt.Errorf("%w: offset of %d bytes", errForeign, len(value))
	}
	offset := int64(binary.BigEndian.Uint64(value))
	s.offset.Store(offset)
	s.completeAt = time.UnixMicro(int64(binary.BigEndian.Uint64(value[8:])))
	if offset >= s.end {
		return fmt.Errorf("%w: %s/%d ends at %d, but the local store has rows up to offset %d",
			errLost, s.identity.Topic, s.identity.Partition, s.end, offset)
	}
	return nil
}

// checkAge returns an error if the changelog may have dropped tombstones since the store was complete. It also rejects a time
// that is equally far in the future, because a clock was changed.
func (s *store) checkAge(maxOffline time.Duration) error {
	if offline := s.opened.Sub(s.completeAt); maxOffline > 0 && offline.Abs() > maxOffline {
		return fmt.Errorf("%w: since %s", errStale, s.completeAt.UTC().Format(time.RFC3339))
	}
	return nil
}
