package retries

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Limits of the dead letters that one timer sends. The rest follows immediately, in separate transactions.
const (
	maxSent      = 200
	maxSentBytes = 4 << 20
)

// Rows and bytes that a timer must have left in its record before it sends another dead letter, besides the bytes of the
// longest one. A dead letter that is sent or parked takes a dozen rows. Each one that is removed because of it takes
// four. At the end, each kind takes one row, and the topic a few. With the smallest limits of a record (1000 rows, 1
// MiB), 872 rows and 256 KiB remain for the previous dead letters.
const (
	freeRows  = maxKinds + 24 + 4*maxRemoved
	freeBytes = topics.MaxRetriedBytes + 256<<10
)

// errCorrupt is returned for a row that is truncated, or that refers to a missing row.
var errCorrupt = errors.New("row is truncated, or refers to a missing row")

// timerName returns the name of the timer that retries due dead letters.
func timerName() []byte { return []byte{rowTopic} }

// waiting is a kind that has waiting dead letters and is not stopped.
type waiting struct {
	*kind
	limit
	head []byte         // index row of the dead letter that is due first
	due  schemas.Micros // when that dead letter is due
}

// queues returns the kinds that have waiting dead letters and are not stopped, in the order in which they are served. It
// reports in stopped whether other kinds have waiting dead letters but are stopped.
func (t table) queues() (list []waiting, stopped bool) {
	set, bad := limits(t.own)
	t.own.Fail(bad)
	for _, k := range t.kinds() {
		w := waiting{kind: k, limit: limitOf(set, k.name, t.cfg.KindRate)}
		if k.counts[schemas.RetryWaiting] == 0 {
			continue
		}
		if w.Rate <= 0 {
			stopped = true
			continue
		}
		t.own.Fail(w.readHead(t.own))
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b waiting) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.name, b.name))
	})
	return list, stopped
}

// readHead finds the dead letter that is due first.
func (w *waiting) readHead(own rows.RowReader) error {
	prefix := queuePrefix(w.name)
	w.head = nil
	err := own.Scan(rows.Scan{Prefix: prefix, Limit: 1}, func(name, _ []byte) bool {
		if len(name) > len(prefix)+8 {
			w.head, w.due = bytes.Clone(name), packed.FirstOrdered[schemas.Micros](name[len(prefix):])
		}
		return false
	})
	if err == nil && w.head == nil && w.counts[schemas.RetryWaiting] > 0 {
		return fmt.Errorf("queue of %s: %w", w.name, errCorrupt)
	}
	return err
}

// id returns the id of the dead letter that is due first.
func (w *waiting) id() []byte { return w.head[len(queuePrefix(w.name))+8:] }

// retryDue retries the due dead letters that the rates allow, and returns the state of the topic after them.
func (t table) retryDue(state topic) topic {
	list, _ := t.queues()
	sent, size := 0, 0
	for i := range list {
		w := &list[i]
		limiter := w.limiter
		for w.isDue(t.now()) && limiter.allows(t.now()) && state.limiter.allows(t.now()) && sent < maxSent && size < maxSentBytes && t.tx.HasRoomFor(freeRows, freeBytes) {
			n := t.send(w.id())
			sent, size = sent+1, size+n
			limiter, state.limiter = limiter.next(t.now(), w.Rate), state.limiter.next(t.now(), t.cfg.TopicRate)
			t.advance(w)
		}
		t.setLimiter(w, limiter)
	}
	return state
}

// isDue reports whether a waiting dead letter is due.
func (w *waiting) isDue(now schemas.Micros) bool { return w.head != nil && w.due <= now }

// advance finds the next due dead letter of a kind.
func (t table) advance(w *waiting) {
	w.counts[schemas.RetryWaiting]--
	t.own.Fail(w.readHead(t.own))
}

// setLimiter writes the rate limiter of a kind, whose counts have changed since w was read.
func (t table) setLimiter(w *waiting, l limiter) {
	if l == w.limiter {
		return
	}
	k := t.kind(w.name)
	k.limiter = l
	t.putKind(k)
}

// send publishes a dead letter's bytes again and returns their number. A dead letter whose topic is no longer in the
// catalogue is parked.
func (t table) send(id []byte) int {
	l := t.find(id)
	if l == nil {
		t.own.Fail(fmt.Errorf("dead letter %x: %w", id, errCorrupt))
		return 0
	}
	if !t.accepts(t.name(), l.To) {
		l.ParkReason = parkedTopic
		t.tx.Effect("parked", 1)
		t.move(l, schemas.RetryParked)
		return 0
	}
	body := t.own.Load(rows.Name(rowBytes, id))
	n, head := binary.Uvarint(body)
	if head <= 0 || n > uint64(len(body)-head) {
		t.own.Fail(fmt.Errorf("bytes of dead letter %x: %w", id, errCorrupt))
		return 0
	}
	key, value := string(body[head:head+int(n)]), body[head+int(n):]
	retry := topics.Retry{Group: l.Group, Partition: l.Partition, Offset: l.Offset, Attempt: l.Attempts + 1}
	t.tx.EmitRetry(t.name(), l.To, key, value, retry)
	t.tx.Effect("retried", 1)
	t.move(l, schemas.RetrySent)
	t.awaitOutcome(l)
	return len(body)
}

// awaitOutcome counts the retry and sets a timer that marks the dead letter as done if it does not fail again.
func (t table) awaitOutcome(l *deadLetter) {
	l.Attempts++
	l.Due = t.now() + schemas.MicrosIn(t.cfg.DoneAfter)
	name := rows.Name(rowDeadLetter, l.id())
	rows.PutValue(t.own, name, l)
	t.own.SetTimer(l.Due.Time(), name)
}

// arm sets the timer, see rearm.
func (t table) arm() { t.rearm(t.topic()) }

// rearm sets the timer to when the next dead letter is due and its rate allows it, and writes the state of the topic. If
// kinds are stopped, the timer fires after recheckInterval at the latest, because no record announces a changed rate in the
// configuration. A timer that is set too early stays, and is set again when it fires. A timer whose time has passed is
// always replaced: if it fired without an effect, it is no longer set.
func (t table) rearm(state topic) {
	list, stopped := t.queues()
	next := schemas.Micros(0)
	if stopped {
		next = t.now() + schemas.MicrosIn(t.cfg.recheckInterval())
	}
	for _, w := range list {
		if at := max(w.due, schemas.Micros(w.limiter), schemas.Micros(state.limiter)); next == 0 || at < next {
			next = at
		}
	}
	if next == 0 || state.timerAt > t.now() && state.timerAt <= next {
		t.putTopic(state)
		return
	}
	if state.timerAt != 0 {
		t.own.DropTimer(state.timerAt.Time(), timerName())
	}
	state.timerAt = next
	t.own.SetTimer(next.Time(), timerName())
	t.putTopic(state)
}
