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

// Limits of what one timer sends. The rest follows immediately, in separate transactions.
const (
	mostAtOnce  = 200
	bytesAtOnce = 4 << 20
)

// Room that a timer must have left in its record, besides the bytes of the longest dead letter, before it sends another one.
// A dead letter that is sent or parked takes a dozen rows. Each one that is removed because of it takes four. At the end,
// each kind takes one row, and the topic a few. With the smallest limits of a record (1000 rows, 1 MiB), 872 rows and 256
// KiB remain for the dead letters before.
const (
	freeRows  = maxKinds + 24 + 4*mostForgotten
	freeBytes = topics.MaxRetriedBytes + 256<<10
)

// errTorn is returned for a row that this package did not write in this form.
var errTorn = errors.New("row cut short, or without its other half")

// wakeName returns the name of the timer that retries due dead letters.
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

// waiting is a kind that has waiting dead letters and is not stopped.
type waiting struct {
	*kind
	limit
	head []byte         // index row of the dead letter that is due first
	due  schemas.Micros // when that dead letter is due
}

// queues returns the kinds that have waiting dead letters and are not stopped, in the order in which they are served. It
// reports in stopped whether other kinds have waiting dead letters but are stopped.
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

// look finds the dead letter that is due first.
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

// id returns the id of the dead letter that is due first.
func (w *waiting) id() []byte { return w.head[len(queuePrefix(w.Name))+8:] }

// work retries the due dead letters that the rates allow.
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
	if state, err = t.topic(); err != nil { // send has changed its counts
		return err
	}
	state.Pace = all
	return t.putTopic(state)
}

// isDue reports whether a waiting dead letter is due.
func (w *waiting) isDue(now schemas.Micros) bool { return w.head != nil && w.due <= now }

// hasRoom reports whether the limits of a record allow one more dead letter.
func (t table) hasRoom() bool {
	rows, bytes := t.tx.Room()
	return rows >= freeRows && bytes >= freeBytes
}

// advance finds the next due dead letter of a kind.
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

// send publishes a dead letter's bytes again and returns their number. A dead letter whose topic is no longer in the
// catalogue is parked.
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

// await counts the retry and sets a timer that marks the dead letter as done if it does not fail again.
func (t table) await(l *letter) error {
	l.Attempts++
	l.Due = t.now() + micros(t.cfg.Settle)
	name := named(rowLetter, l.id())
	if err := put(t.own, name, l); err != nil {
		return err
	}
	return t.own.SetTimer(l.Due.Time(), name)
}

// arm sets the timer to when the next dead letter is due and its rate allows it. If kinds are stopped, the timer fires after
// lookAgain at the latest, because no record announces a changed rate in the configuration. A timer that is set too early
// stays, and is set again when it fires. A timer whose time has passed is always replaced: it may have fired without an
// effect, and then it is not set any more.
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
