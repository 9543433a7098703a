package retries

import (
	"encoding/binary"
	"slices"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Rows of a topic, by the first byte of their names. Times in names are eight bytes that sort in the order of time. idOf
// defines the ids.
const (
	rowDeadLetter = 'l' // id → dead letter
	rowBytes      = 'b' // id → length of the key, key, value
	rowQueue      = 'q' // kind, 0, due, id → empty; for waiting dead letters
	rowEnded      = 'e' // first letter of the state, since, id → empty; for done and parked dead letters
	rowKind       = 'k' // kind → kind
	rowLimit      = 'c' // scope → limit
	rowTopic      = 't' // → topic
)

// maxKinds is the number of kinds of a topic that are distinguished.
const maxKinds = 64

// kind is the state of all dead letters of a kind.
type kind struct {
	name    string // from the name of the row
	group   string
	reason  string // of the newest dead letter
	counts  map[schemas.RetryState]int
	bytes   int // of the waiting dead letters
	limiter limiter
}

// Pack implements packed.Row.
func (k *kind) Pack(p *packed.Packer) {
	p.Version(1)
	packed.String(p, &k.group)
	packed.String(p, &k.reason)
	if k.counts == nil {
		k.counts = map[schemas.RetryState]int{}
	}
	for _, state := range schemas.RetryStates() {
		n := k.counts[state]
		packed.Int(p, &n)
		k.counts[state] = n
	}
	packed.Int(p, &k.bytes)
	packed.Int(p, &k.limiter)
}

// topic is the state of the retries of a topic.
type topic struct {
	limiter limiter
	timerAt schemas.Micros // when the timer fires; 0: it is not set
}

// Pack implements packed.Row.
func (t *topic) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Int(p, &t.limiter)
	packed.Int(p, &t.timerAt)
}

// table accesses the rows of one topic during one callback.
type table struct {
	tx  *rows.Tx
	own rows.Owner
	*group
}

func (g *group) table(tx *rows.Tx, own rows.Owner) table { return table{tx, own, g} }

func (t table) now() schemas.Micros { return schemas.MicrosOf(t.tx.Time()) }

// name returns the name of the topic.
func (t table) name() string { return t.tx.Key() }

func queuePrefix(kind string) []byte { return append(append([]byte{rowQueue}, kind...), 0) }

// index returns the name of the dead letter's index row, or nil if its state has no index.
func (l *deadLetter) index() []byte {
	switch l.State {
	case schemas.RetryWaiting:
		return append(packed.AppendOrdered(queuePrefix(l.Kind), l.Due), l.id()...)
	case schemas.RetryDone, schemas.RetryParked:
		return append(packed.AppendOrdered([]byte{rowEnded, l.State[0]}, l.Since), l.id()...)
	}
	return nil
}

func (t table) find(id []byte) *deadLetter { return t.read(rows.Name(rowDeadLetter, id)) }

// read returns the dead letter of a row, or nil if there is none.
func (t table) read(name []byte) *deadLetter {
	l, found := rows.Load[deadLetter](t.own, name)
	if !found {
		return nil
	}
	return &l
}

func (t table) topic() topic {
	state, _ := rows.Load[topic](t.own, []byte{rowTopic})
	return state
}

func (t table) putTopic(s topic) { rows.PutValue(t.own, []byte{rowTopic}, &s) }

// kinds are the kinds of a topic.
type kinds []*kind

func readKinds(own rows.RowReader) (list kinds, err error) {
	err = rows.Each(own, []byte{rowKind}, func(name string, k kind) {
		k.name = name
		list = append(list, &k)
	})
	return list, err
}

// kinds returns the kinds of the topic.
func (t table) kinds() kinds {
	list, err := readKinds(t.own)
	t.own.Fail(err)
	return list
}

// count returns the number of dead letters of a state.
func (k kinds) count(of schemas.RetryState) (n int) {
	for _, kind := range k {
		n += kind.counts[of]
	}
	return n
}

// bytes returns the bytes of the waiting dead letters.
func (k kinds) bytes() (n int) {
	for _, kind := range k {
		n += kind.bytes
	}
	return n
}

func limits(own rows.RowReader) (map[string]limit, error) {
	all := map[string]limit{}
	err := rows.Each(own, []byte{rowLimit}, func(scope string, l limit) { all[scope] = l })
	return all, err
}

// setLimit writes a limit, unless the stored one is newer.
func (t table) setLimit(l schemas.RetryLimit, o *schemas.RetryOrder) {
	name := rows.Name(rowLimit, l.Scope)
	known, found := rows.Load[limit](t.own, name)
	if !found || known.Time <= o.Time {
		rows.PutValue(t.own, name, &limit{Rate: l.Rate, Priority: l.Priority, Operator: o.Operator, Time: o.Time})
	}
}

// enqueue makes a dead letter wait until due, or parks it. If ordered is true, the number of attempts does not matter.
func (t table) enqueue(known *deadLetter, l *schemas.DeadLetter, due schemas.Micros, ordered bool) {
	if known != nil {
		t.remove(known)
	}
	next := &deadLetter{Group: l.Group, Reason: cut(l.Reason), Attempts: l.Attempts, Since: t.now(), State: schemas.RetryParked, Checksum: checksum(l)}
	next.Partition, next.Offset = l.First()
	all := t.kinds()
	next.Kind = all.kindOf(l)
	if next.ParkReason = t.parkReason(l, all, ordered); next.ParkReason == "" {
		topic := t.topics[l.Topic]
		next.State, next.Due, next.To, next.Bytes = schemas.RetryWaiting, due, topic.RetryTo(l), len(l.Key)+len(l.Value)
		body := append(binary.AppendUvarint(nil, uint64(len(l.Key))), l.Key...)
		t.own.Put(rows.Name(rowBytes, next.id()), append(body, l.Value...))
	} else {
		t.tx.Effect("parked", 1)
	}
	t.add(next)
}

// parkReason returns the reason to park a dead letter, or "" if it waits.
func (t table) parkReason(l *schemas.DeadLetter, all kinds, ordered bool) string {
	if reason := t.unretryable(l); reason != "" {
		return reason
	}
	switch {
	case int(l.Attempts) >= t.cfg.MaxAttempts && !ordered:
		return parkedAttempts
	case all.count(schemas.RetryWaiting) >= t.cfg.MaxWaiting, all.bytes()+len(l.Key)+len(l.Value) > int(t.cfg.MaxWaitingBytes):
		return parkedCapacity
	}
	return ""
}

// kindOf returns the kind of a dead letter. If the topic has maxKinds kinds, unknown kinds become the kind "other" of the
// group.
func (k kinds) kindOf(l *schemas.DeadLetter) string {
	name := topics.KindOf(l)
	if len(k) < maxKinds || slices.ContainsFunc(k, func(k *kind) bool { return k.name == name }) {
		return name
	}
	return l.Topic + "/" + l.Group + "/other"
}

// add writes a dead letter and counts it.
func (t table) add(l *deadLetter) {
	if index := l.index(); index != nil {
		t.own.Put(index, nil)
	}
	rows.PutValue(t.own, rows.Name(rowDeadLetter, l.id()), l)
	t.count(l, 1)
	t.trim(l.State)
}

// remove deletes all rows of a dead letter and updates the counts.
func (t table) remove(l *deadLetter) {
	id := l.id()
	if index := l.index(); index != nil {
		t.own.Delete(index)
	}
	if l.State == schemas.RetryWaiting {
		t.own.Delete(rows.Name(rowBytes, id))
	}
	t.own.Delete(rows.Name(rowDeadLetter, id))
	t.count(l, -1)
}

// move changes the state of a dead letter.
func (t table) move(l *deadLetter, to schemas.RetryState) {
	t.remove(l)
	l.State, l.Since = to, t.now()
	if to != schemas.RetryWaiting {
		l.Bytes = 0
	}
	t.add(l)
}

// count adds n to the counts of the dead letter's kind.
func (t table) count(l *deadLetter, n int) {
	k := t.kind(l.Kind)
	k.group, k.reason = l.Group, l.Reason
	k.counts[l.State] += n
	if l.State == schemas.RetryWaiting {
		k.bytes += n * l.Bytes
	}
	t.putKind(k)
}

// kind returns a kind, with zero counts if it has no row.
func (t table) kind(name string) *kind {
	k, found := rows.Load[kind](t.own, rows.Name(rowKind, name))
	if k.name = name; !found {
		k.counts = map[schemas.RetryState]int{}
	}
	return &k
}

func (t table) putKind(k *kind) { rows.PutValue(t.own, rows.Name(rowKind, k.name), k) }

// maxRemoved is the maximum number of dead letters that are removed when one is added. It bounds the rows of a callback
// after a cap was lowered: each added dead letter brings the state closer to its cap.
const maxRemoved = 10

// trim removes the oldest dead letters of a state beyond its cap, if it has one.
func (t table) trim(of schemas.RetryState) {
	keep := map[schemas.RetryState]int{schemas.RetryDone: t.cfg.MaxDone, schemas.RetryParked: t.cfg.MaxParked}
	bound, bounded := keep[of]
	if !bounded {
		return
	}
	over := min(t.kinds().count(of)-bound, maxRemoved)
	if over <= 0 {
		return
	}
	prefix := []byte{rowEnded, of[0]}
	for _, name := range rows.LoadNames(t.own, prefix, over) {
		if l := t.find(name[len(prefix)+8:]); l != nil {
			t.remove(l)
		}
	}
}
