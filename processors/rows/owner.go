package rows

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/topics"
)

// Owner accesses the rows of one owner, ordered by row name. Put copies names and values. The results of Get must not be
// kept or changed after the callback, and those of Scan after the visit.
type Owner struct {
	tx   *Tx
	name string
}

// Get returns the value of a row, or nil if there is none. An empty value is not nil.
func (o Owner) Get(row []byte) ([]byte, error) {
	if !o.tx.open() {
		return nil, o.tx.err
	}
	return o.tx.s.get(o.name, row)
}

// Load is Get for a callback: an error fails the transaction, and the row counts as missing.
func (o Owner) Load(row []byte) []byte {
	value, err := o.Get(row)
	o.Fail(err)
	return value
}

// Fail is Tx.Fail.
func (o Owner) Fail(err error) { o.tx.Fail(err) }

// Put writes a row. A row that the input must not access fails the transaction. So does a row that exceeds a limit, which makes
// the record a bad record.
func (o Owner) Put(row, value []byte) { o.write(row, value, false) }

// Delete removes a row. It is not an error if the row does not exist.
func (o Owner) Delete(row []byte) { o.write(row, nil, true) }

func (o Owner) write(row, value []byte, deleted bool) {
	tx := o.tx
	switch {
	case !tx.open():
	case len(o.name)+len(row) > maxNameBytes:
		tx.bad("row name of %d bytes with its owner, more than %d", len(o.name)+len(row), maxNameBytes)
	case len(value) > int(tx.s.cfg.MaxValueBytes):
		tx.bad("row of %d bytes, more than %d", len(value), tx.s.cfg.MaxValueBytes)
	case tx.hasRoom(len(o.name) + 1 + len(row) + len(value)):
		tx.s.pending.put(o.log(), o.name, row, value, deleted)
	}
}

// log returns the owner's writes. Consecutive writes to the same owner look them up only once.
func (o Owner) log() *ownerLog {
	tx := o.tx
	if tx.checked != o.name || tx.log == nil {
		tx.checked, tx.log = o.name, tx.s.pending.log(o.name)
	}
	return tx.log
}

// Scan visits rows in order, including those that this callback wrote, until visit returns false. Writes by visit do not
// affect the scan.
func (o Owner) Scan(s Scan, visit func(row, value []byte) bool) error {
	if !o.tx.open() {
		return o.tx.err
	}
	return o.tx.s.scan(o.name, s, visit)
}

// SetTimer makes the group's TimerFunc run once with name when the broker's clock has passed at. A second timer with the
// same owner, name and time is the same timer. Times are rounded up to microseconds. A name that exceeds a limit makes the record a
// bad record.
func (o Owner) SetTimer(at time.Time, name []byte) { o.timer(at, name, false) }

// DropTimer removes a timer.
func (o Owner) DropTimer(at time.Time, name []byte) { o.timer(at, name, true) }

func (o Owner) timer(at time.Time, name []byte, drop bool) {
	tx := o.tx
	if !tx.open() {
		return
	}
	row := timerName(microsUp(at), o.name, name)
	switch {
	case tx.s.topo.timer == nil:
		tx.Fail(errNoTimerFunc)
	case len(row) > maxNameBytes:
		tx.bad("timer name of %d bytes with its owner, more than %d", len(row), maxNameBytes)
	case tx.hasRoom(len(row) + 1):
		tx.s.putReserved(row, nil, drop)
		tx.s.pending.timers = true
	}
}

// putReserved writes a reserved row, which has the empty owner.
func (s *state) putReserved(row, value []byte, deleted bool) {
	s.pending.put(s.pending.log(""), "", row, value, deleted)
}

// get returns the newest value: from the pending batch, the batch in flight, or the store.
func (s *state) get(owner string, row []byte) ([]byte, error) {
	for _, b := range []*batch{s.pending, s.committing} {
		if b == nil {
			continue
		}
		if w, found := b.get(owner, row); found {
			if w.deleted {
				return nil, nil
			}
			return b.at(w.value), nil
		}
	}
	return s.stored(owner, row)
}

// stored reads a row from the cache of recent rows or from the store. It copies the value to the scratch memory of the
// callback.
func (s *state) stored(owner string, row []byte) ([]byte, error) {
	from := len(s.scratch)
	s.scratch = append(append(append(s.scratch, owner...), separator), row...)
	key := s.scratch[from:]
	value := s.recent.get(key)
	if value == nil {
		found, closer, err := s.read(key)
		if errors.Is(err, pebble.ErrNotFound) {
			s.scratch = s.scratch[:from]
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read row of %q: %w", owner, err)
		}
		defer closer.Close()
		s.recent.put(key, found)
		value = found
	}
	s.scratch = append(s.scratch[:from], value...)
	return s.scratch[from:len(s.scratch):len(s.scratch)], nil
}

// read reads a row from the store, unless the store certainly lacks it.
func (s *state) read(key []byte) ([]byte, io.Closer, error) {
	if !s.existing.mayContain(key) {
		return nil, nil, pebble.ErrNotFound
	}
	return s.store.Get(key)
}

// committed is called when the store contains the batch in flight.
func (s *state) committed() {
	s.recent.apply(s.committing)
	s.existing.apply(s.committing)
	s.committing = nil
}

func (s *state) scan(owner string, sc Scan, visit func(row, value []byte) bool) error {
	stored, err := newStoreCursor(s.store, owner, sc)
	if err != nil {
		return fmt.Errorf("scan rows of %q: %w", owner, err)
	}
	cursors := make([]cursor, 0, 3) // newest first
	for _, b := range []*batch{s.pending, s.committing} {
		if b == nil {
			continue
		}
		if c := newBatchCursor(b, owner, sc); c != nil {
			cursors = append(cursors, c)
		}
	}
	err = merge(append(cursors, stored), sc, visit)
	if err := errors.Join(err, stored.close()); err != nil {
		return fmt.Errorf("scan rows of %q: %w", owner, err)
	}
	return nil
}

// commonMark is the prefix of owners that stand for partitions. Ids contain no control characters, so no id has this prefix.
const commonMark = "common\x01"

// CommonOwner returns the owner of a partition's common rows, see Tx.Common.
func CommonOwner(partition, partitions int32) string {
	return OwnerIn(commonMark, partition, partitions)
}

// OwnerIn returns an owner in a partition: the first of prefix0, prefix1 and so on that hashes to the partition.
func OwnerIn(prefix string, partition, partitions int32) string {
	for n := 0; ; n++ {
		if name := prefix + strconv.Itoa(n); topics.Partition(name, partitions) == partition {
			return name
		}
	}
}

// Common returns the rows that all owners of the partition share. Every callback may access them, whether its input is keyed
// or batched. A View reads them as the rows of CommonOwner.
func (tx *Tx) Common() Owner {
	if tx.s == nil {
		tx.Fail(errUsedAfter)
		return Owner{tx: tx}
	}
	return Owner{tx: tx, name: tx.s.common}
}
