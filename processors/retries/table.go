package retries

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Rows of a topic, by the first byte of their names. Times in names are eight bytes that sort in the order of time. Ids are
// those of idOf.
const (
	rowLetter = 'l' // id → dead letter
	rowBytes  = 'b' // id → length of the key, key, value
	rowQueue  = 'q' // kind, 0, due, id → empty; for waiting dead letters
	rowEnded  = 'e' // first letter of the state, since, id → empty; for done and parked dead letters
	rowKind   = 'k' // kind → kind
	rowLimit  = 'c' // scope → limit
	rowTopic  = 't' // → topic
)

// maxKinds is how many kinds of a topic are distinguished.
const maxKinds = 64

// kind is the state of all dead letters of a kind. It is stored as JSON.
type kind struct {
	Name   string                       `json:"name"`
	Group  string                       `json:"group"`
	Reason string                       `json:"reason"` // of the newest letter
	States map[schemas.RetryState]int64 `json:"states"`
	Pace   pace                         `json:"pace"`
}

// topic is the state of all dead letters of a topic. It is stored as JSON.
type topic struct {
	States map[schemas.RetryState]int64 `json:"states"`
	Bytes  int                          `json:"bytes"` // of the waiting dead letters
	Pace   pace                         `json:"pace"`
	Wakes  schemas.Micros               `json:"wakes"` // when the timer fires; 0: it is not set
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

// getter reads rows. rows.Owner and rows.Snapshot implement it.
type getter interface {
	Get(row []byte) ([]byte, error)
	Scan(s rows.Scan, visit func(row, value []byte) bool) error
}

// get reads a row that holds JSON. It returns nil if the row does not exist.
func get[T any](own getter, name []byte) (*T, error) {
	value, err := own.Get(name)
	if err != nil || value == nil {
		return nil, err
	}
	rec := new(T)
	if err := json.Unmarshal(value, rec); err != nil {
		return nil, fmt.Errorf("read row %q: %w", name, err)
	}
	return rec, nil
}

func put[T any](own rows.Owner, name []byte, rec *T) error {
	value, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("write row %q: %w", name, err)
	}
	return own.Put(name, value)
}

// each visits all rows with a prefix, which hold JSON.
func each[T any](own getter, prefix []byte, visit func(name []byte, rec *T)) error {
	var bad error
	err := own.Scan(rows.Scan{Prefix: prefix}, func(name, value []byte) bool {
		rec := new(T)
		if bad = json.Unmarshal(value, rec); bad != nil {
			bad = fmt.Errorf("read row %q: %w", name, bad)
			return false
		}
		visit(name, rec)
		return true
	})
	return cmp.Or(err, bad)
}

func named(kind byte, rest []byte) []byte { return append([]byte{kind}, rest...) }

// appendTime appends a time so that names sort by it, including times before 1970.
func appendTime(b []byte, at schemas.Micros) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(at)^1<<63)
}

func timeIn(b []byte) schemas.Micros { return schemas.Micros(binary.BigEndian.Uint64(b) ^ 1<<63) }

func queuePrefix(kind string) []byte { return append(append([]byte{rowQueue}, kind...), 0) }

// index returns the name of the dead letter's index row, or nil if its state has no index.
func (l *letter) index() []byte {
	switch l.State {
	case schemas.RetryWaiting:
		return append(appendTime(queuePrefix(l.Kind), l.Due), l.id()...)
	case schemas.RetryDone, schemas.RetryParked:
		return append(appendTime([]byte{rowEnded, l.State[0]}, l.Since), l.id()...)
	}
	return nil
}

func (t table) find(id []byte) (*letter, error) { return t.read(named(rowLetter, id)) }

func (t table) read(name []byte) (*letter, error) { return get[letter](t.own, name) }

// topic reads the row of the topic.
func (t table) topic() (*topic, error) {
	state, err := get[topic](t.own, []byte{rowTopic})
	if err == nil && state == nil {
		state = &topic{States: map[schemas.RetryState]int64{}}
	}
	return state, err
}

func (t table) putTopic(s *topic) error { return put(t.own, []byte{rowTopic}, s) }

// kinds reads all kinds of the topic.
func (t table) kinds() ([]*kind, error) {
	var list []*kind
	err := each(t.own, []byte{rowKind}, func(_ []byte, k *kind) { list = append(list, k) })
	return list, err
}

func limits(own getter) (map[string]limit, error) {
	all := map[string]limit{}
	err := each(own, []byte{rowLimit}, func(name []byte, l *limit) { all[string(name[1:])] = *l })
	return all, err
}

// setLimit writes a limit, unless the stored one is newer.
func (t table) setLimit(l schemas.RetryLimit, o *schemas.RetryOrder) error {
	name := named(rowLimit, []byte(l.Scope))
	known, err := get[limit](t.own, name)
	if err != nil || known != nil && known.Time > o.Time {
		return err
	}
	return put(t.own, name, &limit{Rate: l.Rate, Priority: l.Priority, Operator: o.Operator, Time: o.Time})
}

// admit makes a dead letter wait until due, or parks it. If ordered is true, it waits however often it was tried.
func (t table) admit(known *letter, l *schemas.DeadLetter, due schemas.Micros, ordered bool) error {
	if known != nil {
		if err := t.remove(known); err != nil {
			return err
		}
	}
	next := &letter{Group: l.Group, Reason: cut(l.Reason), Attempts: l.Attempts, Since: t.now(), State: schemas.RetryParked, Sum: sumOf(l)}
	next.Partition, next.Offset = l.First()
	var err error
	if next.Kind, err = t.kindOf(l); err != nil {
		return err
	}
	if next.Why, err = t.refuse(l, ordered); err != nil {
		return err
	}
	if next.Why == "" {
		topic := t.topics[l.Topic]
		next.State, next.Due, next.To, next.Bytes = schemas.RetryWaiting, due, topic.RetryTo(l), len(l.Key)+len(l.Value)
		body := append(binary.AppendUvarint(nil, uint64(len(l.Key))), l.Key...)
		if err := t.own.Put(named(rowBytes, next.id()), append(body, l.Value...)); err != nil {
			return err
		}
	} else {
		t.tx.Effect("parked", 1)
	}
	return t.add(next)
}

// refuse returns why a dead letter is parked, or "" if it waits.
func (t table) refuse(l *schemas.DeadLetter, ordered bool) (string, error) {
	if why := t.never(l); why != "" {
		return why, nil
	}
	if int(l.Attempts) >= t.cfg.Attempts && !ordered {
		return whyTried, nil
	}
	state, err := t.topic()
	if err != nil {
		return "", err
	}
	if int(state.States[schemas.RetryWaiting]) >= t.cfg.KeepWaiting || state.Bytes+len(l.Key)+len(l.Value) > t.cfg.KeepBytes {
		return whyRoom, nil
	}
	return "", nil
}

// kindOf returns the kind of a dead letter. If the topic has maxKinds kinds, unknown kinds become the kind "other" of the
// group.
func (t table) kindOf(l *schemas.DeadLetter) (string, error) {
	name := topics.KindOf(l)
	kinds, err := t.kinds()
	if err != nil || len(kinds) < maxKinds || slices.ContainsFunc(kinds, func(k *kind) bool { return k.Name == name }) {
		return name, err
	}
	return l.Topic + "/" + l.Group + "/other", nil
}

// add writes a dead letter and counts it.
func (t table) add(l *letter) error {
	if index := l.index(); index != nil {
		if err := t.own.Put(index, nil); err != nil {
			return err
		}
	}
	if err := put(t.own, named(rowLetter, l.id()), l); err != nil {
		return err
	}
	if err := t.count(l, 1); err != nil {
		return err
	}
	return t.trim(l.State)
}

// remove deletes all rows of a dead letter and updates the counts.
func (t table) remove(l *letter) error {
	id := l.id()
	if index := l.index(); index != nil {
		if err := t.own.Delete(index); err != nil {
			return err
		}
	}
	if l.State == schemas.RetryWaiting {
		if err := t.own.Delete(named(rowBytes, id)); err != nil {
			return err
		}
	}
	if err := t.own.Delete(named(rowLetter, id)); err != nil {
		return err
	}
	return t.count(l, -1)
}

// move changes the state of a dead letter.
func (t table) move(l *letter, to schemas.RetryState) error {
	if err := t.remove(l); err != nil {
		return err
	}
	l.State, l.Since = to, t.now()
	if to != schemas.RetryWaiting {
		l.Bytes = 0
	}
	return t.add(l)
}

// count adds n to the counts of the dead letter's kind and topic.
func (t table) count(l *letter, n int64) error {
	name := named(rowKind, []byte(l.Kind))
	k, err := get[kind](t.own, name)
	if err != nil {
		return err
	}
	if k == nil {
		k = &kind{Name: l.Kind, Group: l.Group, States: map[schemas.RetryState]int64{}}
	}
	state, err := t.topic()
	if err != nil {
		return err
	}
	k.Reason = l.Reason
	k.States[l.State] += n
	state.States[l.State] += n
	if l.State == schemas.RetryWaiting {
		state.Bytes += int(n) * l.Bytes
	}
	return errors.Join(put(t.own, name, k), t.putTopic(state))
}

// mostForgotten is the most dead letters that are removed when one is added. It bounds the rows of a callback after a cap
// was lowered: each added dead letter brings the state closer to its cap.
const mostForgotten = 10

// trim removes the oldest dead letters of a state beyond its cap, if it has one.
func (t table) trim(of schemas.RetryState) error {
	keep := map[schemas.RetryState]int{schemas.RetryDone: t.cfg.KeepDone, schemas.RetryParked: t.cfg.KeepParked}
	most, bounded := keep[of]
	state, err := t.topic()
	if err != nil || !bounded || int(state.States[of]) <= most {
		return err
	}
	prefix := []byte{rowEnded, of[0]}
	var ids [][]byte
	over := min(int(state.States[of])-most, mostForgotten)
	err = t.own.Scan(rows.Scan{Prefix: prefix, Limit: over}, func(name, _ []byte) bool {
		ids = append(ids, bytes.Clone(name[len(prefix)+8:]))
		return true
	})
	for _, id := range ids {
		l, found := t.find(id)
		if err = cmp.Or(err, found); err != nil || l == nil {
			return err
		}
		if err = t.remove(l); err != nil {
			return err
		}
	}
	return err
}
