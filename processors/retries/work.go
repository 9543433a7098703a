package retries

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// What one timer sends at most; the rest follows at once, in transactions of its own.
const (
	mostAtOnce  = 200
	bytesAtOnce = 4 << 20
)

// What a timer keeps free of the bounds of a record, beside the longest letter: a dozen rows of each that is sent or parked,
// four of each that is forgotten for it, and in the end one of each kind and a few of the topic. The least bounds leave 872
// rows and 256 KiB for what is sent before.
const (
	freeRows  = maxKinds + 24 + 4*mostForgotten
	freeBytes = topics.MaxRetriedBytes + 256<<10
)

// errTorn is a row that is not as this package writes it.
var errTorn = errors.New("row cut short, or without its other half")

// wakeName is that of the timer that has what is due retried.
func wakeName() []byte { return []byte{rowTopic} }

// woken notes that the timer has fired.
func (t table) woken() error {
	state, err := t.topic()
	if err != nil {
		return err
	}
	state.Wakes = 0
	return t.putTopic(state)
}

// waiting is a kind of which something waits that may go.
type waiting struct {
	*kind
	limit
	head []byte         // the row of what is due first
	due  schemas.Micros // when that is
}

// queues returns the kinds of which something waits and may go, in the order of who goes first, and whether something waits
// that may not.
func (t table) queues() (list []waiting, stopped bool, err error) {
	kinds, err := t.kinds()
	if err != nil {
		return nil, false, err
	}
	set, err := limits(t.own)
	if err != nil {
		return nil, false, err
	}
	for _, k := range kinds {
		w := waiting{kind: k, limit: limitOf(set, k.Name, t.cfg.Rate)}
		if k.States[schemas.RetryWaiting] == 0 {
			continue
		}
		if w.Rate <= 0 {
			stopped = true
			continue
		}
		if err := w.look(t.own); err != nil {
			return nil, false, err
		}
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b waiting) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	return list, stopped, nil
}

// look finds what is due first.
func (w *waiting) look(own getter) error {
	prefix := queuePrefix(w.Name)
	w.head = nil
	err := own.Scan(rows.Scan{Prefix: prefix, Limit: 1}, func(name, _ []byte) bool {
		if len(name) > len(prefix)+8 {
			w.head, w.due = bytes.Clone(name), timeIn(name[len(prefix):])
		}
		return false
	})
	if err == nil && w.head == nil && w.States[schemas.RetryWaiting] > 0 {
		return fmt.Errorf("queue of %s: %w", w.Name, errTorn)
	}
	return err
}

// id returns that of the letter that is due first.
func (w *waiting) id() []byte { return w.head[len(queuePrefix(w.Name))+8:] }

// work retries what is due and may go.
func (t table) work() error {
	list, _, err := t.queues()
	if err != nil {
		return err
	}
	state, err := t.topic()
	if err != nil {
		return err
	}
	sent, size, all := 0, 0, state.Pace
	for i := range list {
		w := &list[i]
		paced := w.Pace
		for w.isDue(t.now()) && paced.open(t.now()) && all.open(t.now()) && sent < mostAtOnce && size < bytesAtOnce && t.hasRoom() {
			n, err := t.send(w.id())
			if err != nil {
				return err
			}
			sent, size = sent+1, size+n
			paced, all = paced.went(t.now(), w.Rate), all.went(t.now(), t.cfg.TopicRate)
			if err := t.advance(w); err != nil {
				return err
			}
		}
		if paced != w.Pace {
			if err := t.setPace(w.Name, paced); err != nil {
				return err
			}
		}
	}
	if all == state.Pace {
		return nil
	}
	if state, err = t.topic(); err != nil { // sending has counted in it
		return err
	}
	state.Pace = all
	return t.putTopic(state)
}

// isDue tells whether something waits and is due.
func (w *waiting) isDue(now schemas.Micros) bool { return w.head != nil && w.due <= now }

// hasRoom tells whether the bounds of a record allow for one more letter.
func (t table) hasRoom() bool {
	rows, bytes := t.tx.Room()
	return rows >= freeRows && bytes >= freeBytes
}

// advance looks at what is due next of a kind.
func (t table) advance(w *waiting) error {
	w.States[schemas.RetryWaiting]--
	return w.look(t.own)
}

func (t table) setPace(name string, p pace) error {
	k, err := get[kind](t.own, named(rowKind, []byte(name)))
	if err != nil || k == nil {
		return cmp.Or(err, fmt.Errorf("kind %s: %w", name, errTorn))
	}
	k.Pace = p
	return put(t.own, named(rowKind, []byte(name)), k)
}

// send publishes a letter's bytes again, and returns how many they are. A letter whose topic is no longer there is parked.
func (t table) send(id []byte) (int, error) {
	l, err := t.find(id)
	if err != nil || l == nil {
		return 0, cmp.Or(err, fmt.Errorf("letter %x: %w", id, errTorn))
	}
	if !t.takes(t.name(), l.To) {
		l.Why = whyTopic
		t.tx.Effect("parked", 1)
		return 0, t.move(l, schemas.RetryParked)
	}
	body, err := t.own.Get(named(rowBytes, id))
	if err != nil {
		return 0, err
	}
	n, head := binary.Uvarint(body)
	if head <= 0 || n > uint64(len(body)-head) {
		return 0, fmt.Errorf("bytes of letter %x: %w", id, errTorn)
	}
	key, value := string(body[head:head+int(n)]), body[head+int(n):]
	retry := topics.Retry{Group: l.Group, Partition: l.Partition, Offset: l.Offset, Attempt: l.Attempts + 1}
	if err := t.tx.EmitRetry(t.name(), l.To, key, value, retry); err != nil {
		return 0, err
	}
	t.tx.Effect("retried", 1)
	if err := t.move(l, schemas.RetrySent); err != nil {
		return 0, err
	}
	return len(body), t.await(l)
}

// await counts the retry, and has the letter counted as done if it does not come back.
func (t table) await(l *letter) error {
	l.Attempts++
	l.Due = t.now() + micros(t.cfg.Settle)
	name := named(rowLetter, l.id())
	if err := put(t.own, name, l); err != nil {
		return err
	}
	return t.own.SetTimer(l.Due.Time(), name)
}

// arm sets the timer to when the next letter is due and may go, or to when it is looked again at what may not: no record
// tells of another rate in the configuration. One that is set for too early stays: when it fires, it is set anew. One that
// should have fired is set in any case: if it did, and came to nothing, it is not set any more.
func (t table) arm() error {
	list, stopped, err := t.queues()
	if err != nil || len(list) == 0 && !stopped {
		return err
	}
	state, err := t.topic()
	if err != nil {
		return err
	}
	next := schemas.Micros(0)
	if stopped {
		next = t.now() + micros(t.cfg.lookAgain())
	}
	for _, w := range list {
		if at := max(w.due, schemas.Micros(w.Pace), schemas.Micros(state.Pace)); next == 0 || at < next {
			next = at
		}
	}
	if state.Wakes > t.now() && state.Wakes <= next {
		return nil
	}
	if state.Wakes != 0 {
		if err := t.own.DropTimer(state.Wakes.Time(), wakeName()); err != nil {
			return err
		}
	}
	state.Wakes = next
	return errors.Join(t.own.SetTimer(next.Time(), wakeName()), t.putTopic(state))
}
