package rows

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Tx is the context of a callback: the rows that it may access, the topics that it may emit to, and the timestamp of its
// record. It is valid until the callback returns. The writes of a callback count only if it returns nil. A
// *schemas.BadRecordError undoes them and sends the record to the dead-letter topic. Any other error stops the partition,
// and the supervisor restarts the group from the same record.
type Tx struct {
	s            *state
	key          string
	owner        string // the only owner whose rows may be accessed; "": any owner of the partition
	time         time.Time
	from         origin
	cachedOrigin int64 // from.since(), once it was called; 0: not yet

	start mark
	err   error // the first misuse or exceeded limit: the callback fails even if it ignores the error

	checked string    // the last owner that Of has accepted …
	log     *ownerLog // … and its writes; nil: none yet
}

// state holds the rows that the callbacks of one partition read and write: the pending batch, the batch in flight, and the store.
type state struct {
	topo    *topology
	cfg     *Config
	id      int32  // the partition
	common  string // owner of the common rows
	memory  any    // of the callbacks, see Group.Memory
	pending *batch
	emitter
	committing *batch // nil: none
	store      reader
	recent     recentRows // caches rows of store
	scratch    []byte     // values that Get copied from the store for the current callback
}

// origin returns when the external event arrived that a record originates from, in microseconds.
type origin interface{ originTime() int64 }

var (
	errUsedAfter   = errors.New("transaction used after its callback has returned")
	errNoOwnRows   = errors.New("the record of a batched input has no single owner: use Of")
	errNoTimerFunc = errors.New("set timer: the group has no Timer")
)

// begin makes tx the transaction of the next callback.
func (s *state) begin(tx *Tx, key, owner string, at time.Time, from origin) {
	s.scratch = s.scratch[:0]
	*tx = Tx{s: s, key: key, owner: owner, time: at, from: from, start: s.pending.mark()}
}

// end closes tx. It returns the error of the callback, or that of a misuse that the callback ignored. After an error, it
// undoes the callback's writes.
func (s *state) end(tx *Tx, err error) error {
	if tx.err != nil {
		err = tx.err
	}
	if err != nil {
		s.pending.undo(tx.start)
	}
	tx.s = nil
	return err
}

// fail stores the first error.
func (tx *Tx) fail(err error) error {
	if tx.err == nil {
		tx.err = err
	}
	return err
}

// bad stores an error that sends the record to the dead-letter topic.
func (tx *Tx) bad(format string, args ...any) error {
	return tx.fail(schemas.Bad(fmt.Sprintf(format, args...)))
}

// Own returns the rows of the record's key, or in a timer callback those of the timer's owner. In a batched input,
// their use is an error.
func (tx *Tx) Own() Owner {
	if tx.owner == "" {
		tx.fail(errNoOwnRows)
		return Owner{tx: tx}
	}
	return Owner{tx: tx, name: tx.owner}
}

// Of returns the rows of an owner. In a keyed input, the owner must be the record's key; any other owner is an error. In a
// batched input, it must be in the record's partition. The record names these owners, so another partition makes it a bad
// record.
func (tx *Tx) Of(owner string) Owner {
	if tx.s == nil {
		tx.fail(errUsedAfter)
		return Owner{tx: tx}
	}
	if owner == tx.owner && owner != "" || owner == tx.checked && owner != "" {
		return Owner{tx: tx, name: owner}
	}
	if err := tx.checkAccess(owner); err != nil {
		tx.fail(err)
		return Owner{tx: tx}
	}
	tx.checked, tx.log = owner, nil
	return Owner{tx: tx, name: owner}
}

func (tx *Tx) checkAccess(owner string) error {
	if err := checkOwner(owner); err != nil {
		return err
	}
	if tx.owner != "" {
		return fmt.Errorf("access rows of %q: the record's key is %q", owner, tx.owner)
	}
	if p := topics.Partition(owner, tx.s.topo.partitions); p != tx.s.id {
		return schemas.Bad(fmt.Sprintf("access rows of %q: its partition is %d, the record's is %d", owner, p, tx.s.id))
	}
	return nil
}

// checkOwner returns an error if an owner's name is invalid. It is a *schemas.BadRecordError, because the name comes from a
// record.
func checkOwner(owner string) error {
	switch {
	case owner == "":
		return schemas.Bad("empty owner")
	case strings.IndexByte(owner, separator) >= 0:
		return schemas.Bad(fmt.Sprintf("owner %q contains a zero byte", owner))
	}
	return nil
}

// Key returns the record's key, or in a timer callback the timer's owner.
func (tx *Tx) Key() string { return tx.key }

// Partition returns the partition of the record.
func (tx *Tx) Partition() int32 { return tx.s.id }

// Partitions returns the number of partitions of the topics that callbacks emit to.
func (tx *Tx) Partitions() int32 { return tx.s.topo.partitions }

// Memory returns the value that the callbacks of this partition share, see Group.Memory. Callbacks run one at a time.
func (tx *Tx) Memory() any {
	if tx.s == nil {
		tx.fail(errUsedAfter)
		return nil
	}
	return tx.s.memory
}

// Time returns the record's timestamp. It is the only current time in a callback.
func (tx *Tx) Time() time.Time { return tx.time }

// Emit sends value under key to a declared topic, to the partition of key. An error (undeclared topic, exceeded limit) also
// fails the callback if it is ignored. A nil value is a tombstone.
func (tx *Tx) Emit(topic, key string, value []byte) error {
	if tx.s == nil {
		return tx.fail(errUsedAfter)
	}
	return tx.EmitTo(topic, topics.Partition(key, tx.s.topo.partitions), key, value)
}

// EmitTo sends value to one partition of a declared topic.
func (tx *Tx) EmitTo(topic string, partition int32, key string, value []byte) error {
	_, err := tx.emit(topic, partition, key, value)
	return err
}

// emit adds an output record, unless it is dropped, see state.emit.
func (tx *Tx) emit(topic string, partition int32, key string, value []byte) (*emit, error) {
	if tx.s == nil {
		return nil, tx.fail(errUsedAfter)
	}
	index, ok := tx.s.topo.outputs[topic]
	switch {
	case !ok:
		return nil, tx.fail(fmt.Errorf("emit to %s: not among the outputs of group %s", topic, tx.s.topo.name))
	case partition < 0 || partition >= tx.s.topo.partitions:
		return nil, tx.fail(fmt.Errorf("emit to %s: partition %d of %d", topic, partition, tx.s.topo.partitions))
	case len(value) > int(tx.s.cfg.MaxValueBytes):
		return nil, tx.bad("emit to %s: %d bytes, more than %d", topic, len(value), tx.s.cfg.MaxValueBytes)
	case len(key)+len(value) > int(tx.s.cfg.MaxValueBytes)+maxNameBytes: // a retry may have a long key
		return nil, tx.bad("emit to %s: key and value of %d bytes, more than %d", topic, len(key)+len(value), tx.s.cfg.MaxValueBytes+maxNameBytes)
	}
	if err := tx.checkRoom(len(key) + len(value)); err != nil {
		return nil, err
	}
	return tx.s.emit(index, partition, key, value, tx.originTime()), nil
}

// emitLatest is Emit for a record that is the state of the row that the callback has just written. If a later callback of the
// transaction replaces the row, the record is not sent.
func (tx *Tx) emitLatest(topic, key string, value []byte) error {
	e, err := tx.emit(topic, topics.Partition(key, tx.s.topo.partitions), key, value)
	if e != nil {
		e.row = int32(len(tx.s.pending.writes))
	}
	return err
}

// EmitRetry is EmitTo for the retry of a dead letter, see topics.Retry.
func (tx *Tx) EmitRetry(topic string, partition int32, key string, value []byte, retry topics.Retry) error {
	e, err := tx.emit(topic, partition, key, value)
	if err != nil || e == nil {
		return err
	}
	tx.s.pending.wrap(e, envelope{topic: topic, headers: map[string][]byte{topics.RetryHeader: retry.Value()}, isNew: true})
	return nil
}

// Room returns how many more rows and records the callback may write within Config.MaxRecordWrites, and how many more
// bytes of them, including names, within Config.MaxRecordWriteBytes. After the callback has returned, it returns 0, 0.
func (tx *Tx) Room() (rows, bytes int) {
	if tx.s == nil {
		tx.fail(errUsedAfter)
		return 0, 0
	}
	b, cfg := tx.s.pending, tx.s.cfg
	return cfg.MaxRecordWrites - (len(b.writes) - tx.start.writes) - (len(b.emits) - tx.start.emits), int(cfg.MaxRecordWriteBytes) - (len(b.data) - tx.start.data)
}

// HasRoom reports whether a callback with an unbounded number of rows may write more. It leaves 100 rows and 64 KiB for the
// last writes of the callback.
func (tx *Tx) HasRoom() bool { return tx.HasRoomFor(100, 64<<10) }

// HasRoomFor reports whether the callback may write so many more rows and records, and so many more bytes. See Room.
func (tx *Tx) HasRoomFor(rows, bytes int) bool {
	leftRows, leftBytes := tx.Room()
	return leftRows >= rows && leftBytes >= bytes
}

// checkRoom returns an error if a row or record of the given size exceeds the limits of the callback.
func (tx *Tx) checkRoom(bytes int) error {
	switch rowsLeft, bytesLeft := tx.Room(); {
	case rowsLeft <= 0:
		return tx.bad("callback wrote more than %d rows and records", tx.s.cfg.MaxRecordWrites)
	case bytes > bytesLeft:
		return tx.bad("callback wrote more than %d bytes of rows and records", tx.s.cfg.MaxRecordWriteBytes)
	}
	return nil
}

// originTime returns when the external event arrived that the record originates from.
func (tx *Tx) originTime() int64 {
	if tx.cachedOrigin == 0 {
		tx.cachedOrigin = tx.from.originTime()
	}
	return tx.cachedOrigin
}

// Count increments the group's counter of records dropped on purpose, by reason. Reasons must be a small, fixed set.
func (tx *Tx) Count(reason string) { tx.count(counted{reason, 1, true}) }

// Effect adds n to the group's counter of effects, by name. Names must be a small, fixed set. Effects are results of rules
// that neither rows nor records show.
func (tx *Tx) Effect(name string, n int) { tx.count(counted{name, n, false}) }

// count merges c with the last count of the callback if they have the same name. For example, a trim drops hundreds of rows
// for one reason.
func (tx *Tx) count(c counted) {
	if tx.s == nil || c.n <= 0 {
		return
	}
	list := &tx.s.pending.counts
	if last := len(*list) - 1; last >= tx.start.counts && (*list)[last].name == c.name && (*list)[last].dropped == c.dropped {
		(*list)[last].n += c.n
		return
	}
	*list = append(*list, c)
}
