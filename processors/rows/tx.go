package rows

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Tx is what a callback sees: the rows it may touch, the topics it may emit to, and the record's own time. It is valid
// until the callback returns. What a callback wrote counts only if it returns nil; a *schemas.BadRecordError sends the
// record to the dead letters and undoes the callback's writes; any other error stops the partition, and the supervisor
// starts it again from the same record.
type Tx struct {
	s     *state
	key   string
	owner string // the only owner whose rows may be touched, "": any of the partition
	time  time.Time
	from  origin
	begun int64 // from.since(), once asked for; 0: not yet

	silent bool // what is emitted is dropped

	start mark
	err   error // the first misuse or breach of a bound: fails the callback even if it was ignored

	checked string    // the owner that Of found to be allowed last …
	log     *ownerLog // … and its writes, nil if there are none yet
}

// state is what the callbacks of one partition work on: the batch being filled, the one being committed, the store.
type state struct {
	topo    *topology
	limits  limits
	id      int32  // the partition
	common  string // the owner of its common rows
	memory  any    // of the callbacks, see Group.Memory
	pending *batch
	flying  *batch // nil: none
	store   reader
	recent  recentRows // of store
	scratch []byte     // what Get copied out of the store for the present callback
}

// origin tells when the outside event arrived that a record goes back to, in microseconds.
type origin interface{ since() int64 }

// limits bound what one callback may do.
type limits struct {
	rows       int
	bytes      int
	nameBytes  int
	valueBytes int
}

var (
	errUsedAfter   = errors.New("transaction used after its callback has returned")
	errNoOwnRows   = errors.New("a batched input has no owner of its own: use Of")
	errNoTimerFunc = errors.New("set timer: the group has no Timer to work it off")
)

// begin makes tx the transaction of the next callback.
func (s *state) begin(tx *Tx, key, owner string, at time.Time, from origin) {
	s.scratch = s.scratch[:0]
	*tx = Tx{s: s, key: key, owner: owner, time: at, from: from, start: s.pending.mark()}
}

// end closes tx with what the callback returned; the error is the callback's or that of a misuse it ignored. Its
// writes are undone if there is one.
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

// fail remembers the first error.
func (tx *Tx) fail(err error) error {
	if tx.err == nil {
		tx.err = err
	}
	return err
}

// bad is fail with an error that blames the record itself: it goes to the dead letters.
func (tx *Tx) bad(format string, args ...any) error {
	return tx.fail(schemas.Bad(fmt.Sprintf(format, args...)))
}

// Own returns the rows of the record's key, of a timer those of its owner. Of a batched input it is an error to use
// them.
func (tx *Tx) Own() Owner {
	if tx.owner == "" {
		tx.fail(errNoOwnRows)
		return Owner{tx: tx}
	}
	return Owner{tx: tx, name: tx.owner}
}

// Of returns the rows of an owner: of a keyed input only the record's key, anything else is an error; of a batched one
// any owner of the partition: the owners came with the record, so that another's makes it a bad one.
func (tx *Tx) Of(owner string) Owner {
	if tx.s == nil {
		tx.fail(errUsedAfter)
		return Owner{tx: tx}
	}
	if owner == tx.owner && owner != "" || owner == tx.checked && owner != "" {
		return Owner{tx: tx, name: owner}
	}
	if err := tx.allowed(owner); err != nil {
		tx.fail(err)
		return Owner{tx: tx}
	}
	tx.checked, tx.log = owner, nil
	return Owner{tx: tx, name: owner}
}

func (tx *Tx) allowed(owner string) error {
	if err := checkOwner(owner); err != nil {
		return err
	}
	if tx.owner != "" {
		return fmt.Errorf("rows of %q: the record's key is %q", owner, tx.owner)
	}
	if p := topics.Partition(owner, tx.s.topo.partitions); p != tx.s.id {
		return schemas.Bad(fmt.Sprintf("rows of %q: its partition is %d, the record's %d", owner, p, tx.s.id))
	}
	return nil
}

// checkOwner says what is wrong with an owner's name, as a bad record: the name came with one.
func checkOwner(owner string) error {
	switch {
	case owner == "":
		return schemas.Bad("empty owner")
	case strings.IndexByte(owner, separator) >= 0:
		return schemas.Bad(fmt.Sprintf("owner %q holds a zero byte", owner))
	}
	return nil
}

// Silent says whether what the callback emits is dropped: the group is a generation that is being built, or one that was.
func (tx *Tx) Silent() bool { return tx.silent }

// Key returns the record's key; of a timer, its owner.
func (tx *Tx) Key() string { return tx.key }

// Partition returns the partition that the record is in.
func (tx *Tx) Partition() int32 { return tx.s.id }

// Partitions returns how many partitions the topics have that callbacks emit to.
func (tx *Tx) Partitions() int32 { return tx.s.topo.partitions }

// Memory returns what the callbacks of this partition remember from one record to the next, see Group.Memory. They run
// one at a time.
func (tx *Tx) Memory() any {
	if tx.s == nil {
		tx.fail(errUsedAfter)
		return nil
	}
	return tx.s.memory
}

// Time returns the record's timestamp: the only now there is in a callback.
func (tx *Tx) Time() time.Time { return tx.time }

// Emit sends value to a declared topic under key, to the partition of key. Its errors (undeclared topic, bounds) also
// fail the callback if they are ignored. A nil value is a tombstone.
func (tx *Tx) Emit(topic, key string, value []byte) error {
	if tx.s == nil {
		return tx.fail(errUsedAfter)
	}
	return tx.EmitTo(topic, topics.Partition(key, tx.s.topo.partitions), key, value)
}

// EmitTo sends value to one partition of a declared topic.
func (tx *Tx) EmitTo(topic string, partition int32, key string, value []byte) error {
	if tx.s == nil {
		return tx.fail(errUsedAfter)
	}
	index, ok := tx.s.topo.outputs[topic]
	switch {
	case !ok:
		return tx.fail(fmt.Errorf("emit to %s: not among the outputs of group %s", topic, tx.s.topo.name))
	case partition < 0 || partition >= tx.s.topo.partitions:
		return tx.fail(fmt.Errorf("emit to %s: partition %d of %d", topic, partition, tx.s.topo.partitions))
	case len(value) > tx.s.limits.valueBytes:
		return tx.bad("emit to %s: %d bytes, more than %d", topic, len(value), tx.s.limits.valueBytes)
	case len(key)+len(value) > tx.s.limits.valueBytes+tx.s.limits.nameBytes: // a retry may have a long key
		return tx.bad("emit to %s: key and value of %d bytes, more than %d", topic, len(key)+len(value), tx.s.limits.valueBytes+tx.s.limits.nameBytes)
	}
	if tx.silent {
		return nil
	}
	if err := tx.room(len(key) + len(value)); err != nil {
		return err
	}
	tx.s.pending.emit(index, partition, key, value, tx.begunAt())
	return nil
}

// EmitRetry is EmitTo of a record that is tried again: see topics.Retry.
func (tx *Tx) EmitRetry(topic string, partition int32, key string, value []byte, retry topics.Retry) error {
	if err := tx.EmitTo(topic, partition, key, value); err != nil || tx.silent {
		return err
	}
	b := tx.s.pending
	b.wrap(&b.emits[len(b.emits)-1], envelope{topic: topic, headers: map[string][]byte{topics.RetryHeader: retry.Value()}, isNew: true})
	return nil
}

// Room returns how many rows and records the callback may still write before Config.MaxRecordRows makes its record a bad
// one, and how many bytes of them, names included, before Config.MaxRecordBytes does; 0 after it has returned.
func (tx *Tx) Room() (rows, bytes int) {
	if tx.s == nil {
		tx.fail(errUsedAfter)
		return 0, 0
	}
	b, limits := tx.s.pending, tx.s.limits
	return limits.rows - (len(b.writes) - tx.start.writes) - (len(b.emits) - tx.start.emits), limits.bytes - (len(b.data) - tx.start.data)
}

// room checks the bounds of one callback before it adds a row or record of so many bytes.
func (tx *Tx) room(bytes int) error {
	switch rowsLeft, bytesLeft := tx.Room(); {
	case rowsLeft <= 0:
		return tx.bad("more than %d rows and records of one input record", tx.s.limits.rows)
	case bytes > bytesLeft:
		return tx.bad("more than %d bytes of rows and records of one input record", tx.s.limits.bytes)
	}
	return nil
}

// begunAt is when the outside event arrived that the record goes back to.
func (tx *Tx) begunAt() int64 {
	if tx.begun == 0 {
		tx.begun = tx.from.since()
	}
	return tx.begun
}

// Count adds one to the group's counter of records dropped on purpose, by reason: a fixed, short set of words.
func (tx *Tx) Count(reason string) { tx.count(counted{reason, 1, true}) }

// Effect adds n to the group's counter of effects by name, a fixed, short set of words. Effects are what rules did and neither
// rows nor records tell.
func (tx *Tx) Effect(name string, n int) { tx.count(counted{name, n, false}) }

// count adds to what the callback counted last, if that was the same: a trim drops hundreds for one reason.
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
