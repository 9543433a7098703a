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
// record. It is valid until the callback returns; a use after that fails the next callback of the partition. The writes of a
// callback count only if it returns nil. A *schemas.BadRecordError undoes them and sends the record to the dead-letter topic. Any
// other error stops the partition, and the supervisor restarts the group from the same record.
//
// Writes, and the reads for callbacks (Load and the functions with this prefix, Record), return no error. An error fails the
// transaction: later writes have no effect, later reads find nothing, and the callback's result is that error. A callback need
// not check for it, because nothing that it decides afterwards has an effect. See Err.
type Tx struct {
	s            *state
	key          string
	owner        string // the only owner whose rows may be accessed; "": any owner of the partition
	time         time.Time
	from         origin
	cachedOrigin int64 // from.since(), once it was called; 0: not yet

	start mark
	err   error // see Err

	usedMemory bool // the callback has requested the memory

	checked string    // the last owner that Of has accepted …
	log     *ownerLog // … and its writes; nil: none yet
}

// state holds the rows that the callbacks of one partition read and write: the pending batch, the batch in flight, and the store.
type state struct {
	topo       *topology
	cfg        *Config
	id         int32  // the partition
	common     string // owner of the common rows
	memory     any    // of the callbacks, see Group.Memory
	pending    *batch
	silent     bool   // drops the output records of the record being processed
	committing *batch // nil: none
	store      reader
	recent     recentRows // caches rows of store
	existing   existing   // knows which rows store lacks
	scratch    []byte     // values that Get copied from the store for the current callback
	encoded    []byte     // the last row of PutValue, which Put has copied
}

// origin returns when the external event arrived that a record originates from, in microseconds.
type origin interface{ originTime() int64 }

var (
	errUsedAfter   = errors.New("transaction used after its callback has returned")
	errNoOwnRows   = errors.New("the record of a batched input has no single owner: use Of")
	errNoTimerFunc = errors.New("set timer: the group has no Timer")
)

// begin makes tx the transaction of the next callback. If tx was used since the previous callback, it has failed.
func (s *state) begin(tx *Tx, key, owner string, at time.Time, from origin) {
	s.scratch = s.scratch[:0]
	*tx = Tx{s: s, key: key, owner: owner, time: at, from: from, start: s.pending.mark(), err: tx.err}
}

// end closes tx. It returns the error of the transaction, or that of the callback. After an error, it undoes the callback's
// writes.
func (s *state) end(tx *Tx, err error) error {
	if tx.err != nil {
		err = tx.err
	}
	if err != nil {
		s.pending.undo(tx.start)
		if tx.usedMemory {
			s.memory = nil
		}
	}
	tx.s, tx.err = nil, nil
	return err
}

// Err returns the first error of the transaction, or nil. It is needed only to undo effects outside of the transaction.
func (tx *Tx) Err() error { return tx.err }

// open reports whether the callback is running and the transaction has not failed.
func (tx *Tx) open() bool {
	if tx.s == nil {
		tx.Fail(errUsedAfter)
	}
	return tx.err == nil
}

// Fail fails the transaction with err, unless err is nil or the transaction has failed before.
func (tx *Tx) Fail(err error) {
	if tx.err == nil {
		tx.err = err
	}
}

// bad stores an error that sends the record to the dead-letter topic.
func (tx *Tx) bad(format string, args ...any) { tx.Fail(schemas.Bad(fmt.Sprintf(format, args...))) }

// Own returns the rows of the record's key, or in a timer callback those of the timer's owner. In a batched input,
// their use is an error.
func (tx *Tx) Own() Owner {
	if tx.owner == "" {
		tx.Fail(errNoOwnRows)
		return Owner{tx: tx}
	}
	return Owner{tx: tx, name: tx.owner}
}

// Of returns the rows of an owner. In a keyed input, the owner must be the record's key; any other owner is an error. In a
// batched input, it must be in the record's partition. The record names these owners, so another partition makes it a bad
// record.
func (tx *Tx) Of(owner string) Owner {
	if tx.s == nil {
		tx.Fail(errUsedAfter)
		return Owner{tx: tx}
	}
	if owner == tx.owner && owner != "" || owner == tx.checked && owner != "" {
		return Owner{tx: tx, name: owner}
	}
	if err := tx.checkAccess(owner); err != nil {
		tx.Fail(err)
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
	if p := tx.PartitionOf(owner); p != tx.s.id {
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

// PartitionOf returns the partition of a key in the topics that callbacks emit to.
func (tx *Tx) PartitionOf(key string) int32 { return topics.Partition(key, tx.s.topo.partitions) }

// Memory returns the value that the callbacks of this partition share, see Group.Memory. Callbacks run one at a time.
func (tx *Tx) Memory() any {
	if tx.s == nil {
		tx.Fail(errUsedAfter)
		return nil
	}
	if tx.s.memory == nil && tx.s.topo.memory != nil {
		tx.s.memory = tx.s.topo.memory()
	}
	tx.usedMemory = true
	return tx.s.memory
}

// Time returns the record's timestamp. It is the only current time in a callback.
func (tx *Tx) Time() time.Time { return tx.time }

// Emit sends value under key to a declared topic, to the partition of key. A nil value is a tombstone.
func (tx *Tx) Emit(topic, key string, value []byte) { tx.emitByKey(topic, key, value) }

// EmitTo sends value to one partition of a declared topic.
func (tx *Tx) EmitTo(topic string, partition int32, key string, value []byte) {
	tx.emit(topic, partition, key, value)
}

func (tx *Tx) emitByKey(topic, key string, value []byte) *emit {
	if !tx.open() {
		return nil
	}
	return tx.emit(topic, tx.PartitionOf(key), key, value)
}

// emit adds an output record. It returns nil if the transaction has failed or the record is dropped, see state.emit.
func (tx *Tx) emit(topic string, partition int32, key string, value []byte) *emit {
	index, ok := tx.output(topic, partition)
	switch {
	case !ok:
	case len(value) > int(tx.s.cfg.MaxValueBytes):
		tx.bad("emit to %s: %d bytes, more than %d", topic, len(value), tx.s.cfg.MaxValueBytes)
	case len(key)+len(value) > int(tx.s.cfg.MaxValueBytes)+maxNameBytes: // a retry may have a long key
		tx.bad("emit to %s: key and value of %d bytes, more than %d", topic, len(key)+len(value), tx.s.cfg.MaxValueBytes+maxNameBytes)
	case tx.hasRoom(len(key) + len(value)):
		return tx.s.emit(index, partition, key, value, tx.originTime())
	}
	return nil
}

// output returns the index of a topic among the outputs. It returns false if the transaction has failed.
func (tx *Tx) output(topic string, partition int32) (uint16, bool) {
	if !tx.open() {
		return 0, false
	}
	index, ok := tx.s.topo.outputs[topic]
	if !ok {
		tx.Fail(fmt.Errorf("emit to %s: not among the outputs of group %s", topic, tx.s.topo.name))
	} else if partition < 0 || partition >= tx.s.topo.partitions {
		tx.Fail(fmt.Errorf("emit to %s: partition %d of %d", topic, partition, tx.s.topo.partitions))
	}
	return index, tx.err == nil
}

// emitLatest is Emit for a record that is the state of the row that the callback has just written. If a later callback of the
// transaction replaces the row, the record is not sent.
func (tx *Tx) emitLatest(topic, key string, value []byte) {
	if e := tx.emitByKey(topic, key, value); e != nil {
		e.row = int32(len(tx.s.pending.writes))
	}
}

// EmitRetry is EmitTo for the retry of a dead letter, see topics.Retry.
func (tx *Tx) EmitRetry(topic string, partition int32, key string, value []byte, retry topics.Retry) {
	if e := tx.emit(topic, partition, key, value); e != nil {
		tx.s.pending.wrap(e, envelope{topic: topic, headers: map[string][]byte{topics.RetryHeader: retry.Value()}, isNew: true})
	}
}

// Room returns how many more rows and records the callback may write within Config.MaxRecordWrites, and how many more
// bytes of them, including names, within Config.MaxRecordWriteBytes. After the callback has returned, it returns 0, 0.
func (tx *Tx) Room() (rows, bytes int) {
	if tx.s == nil {
		tx.Fail(errUsedAfter)
		return 0, 0
	}
	b, cfg := tx.s.pending, tx.s.cfg
	rows = cfg.MaxRecordWrites - (len(b.writes) - tx.start.writes) - (len(b.emits) - tx.start.emits)
	bytes = int(cfg.MaxRecordWriteBytes) - (len(b.data) - tx.start.data) - (b.gatheredBytes - tx.start.gatheredBytes)
	return rows, bytes
}

// HasRoom reports whether a callback with an unbounded number of rows may write more. It leaves 100 rows and 64 KiB for the
// last writes of the callback.
func (tx *Tx) HasRoom() bool { return tx.HasRoomFor(100, 64<<10) }

// HasRoomFor reports whether the callback may write so many more rows and records, and so many more bytes. See Room.
func (tx *Tx) HasRoomFor(rows, bytes int) bool {
	leftRows, leftBytes := tx.Room()
	return leftRows >= rows && leftBytes >= bytes
}

// hasRoom reports whether a row or record of the given size is within the limits of the callback. If not, the transaction fails.
func (tx *Tx) hasRoom(bytes int) bool {
	switch rowsLeft, bytesLeft := tx.Room(); {
	case rowsLeft <= 0:
		tx.bad("callback wrote more than %d rows and records", tx.s.cfg.MaxRecordWrites)
	case bytes > bytesLeft:
		tx.bad("callback wrote more than %d bytes of rows and records", tx.s.cfg.MaxRecordWriteBytes)
	}
	return tx.err == nil
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
