package insight

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// maxSequence is the maximum size of a user's day in bytes, some six thousand actions. Each added action rewrites the
// row, and no person does more in a day.
const maxSequence = 64 << 10

// act is an entry of a sequence.
type act struct {
	at   schemas.Micros
	verb schemas.Verb
}

func (d day) start() schemas.Micros { return schemas.Micros(d) * 86400e6 }

func sequenceKey(d day, user string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{sequenceTable}, uint32(d)^1<<31), user...)
}

// sequence adds an action to its user's day, unless the day is full.
func (w *writer) sequence(e *schemas.EnrichedAction) error {
	key := sequenceKey(dayOf(e.Timestamp), string(e.Actor))
	value, err := w.get(key)
	if err != nil {
		return err
	}
	if value == nil {
		value = []byte{rowVersion}
	}
	grown := binary.AppendVarint(value, int64(e.Timestamp-dayOf(e.Timestamp).start()))
	grown = packed.AppendText(grown, e.Verb)
	if len(grown) <= maxSequence {
		w.rows[string(key)] = grown
	}
	return nil
}

// appendActs appends to acts the actions of a day's row with one of the verbs, in the order of the row.
func appendActs(acts []act, d day, row []byte, verbs []schemas.Verb) ([]act, error) {
	r := packed.NewVersionReader(row, rowVersion)
	for r.More() {
		at, verb := d.start()+schemas.Micros(r.Varint()), r.Bytes()
		if i := slices.IndexFunc(verbs, func(v schemas.Verb) bool { return string(v) == string(verb) }); i >= 0 {
			acts = append(acts, act{at, verbs[i]})
		}
	}
	return acts, r.End()
}

// eachDay visits the days from one day to another, by user and, for each user, in ascending order. visit receives the
// actions with one of the verbs, by time. It may use the slices until it returns. Only one day of one user is in memory
// at a time.
func (s *Store) eachDay(ctx context.Context, from, to day, verbs []schemas.Verb, visit func(user []byte, acts []act)) error {
	return s.db.Use(func(db *pebble.DB) error {
		at := db.NewSnapshot() // so that all days of a user are consistent
		defer at.Close()
		m := &dayMerge{}
		return errors.Join(m.run(ctx, at, from, to, verbs, visit), m.close())
	})
}

// run merges the rows, which are stored by day, into an order by user.
func (m *dayMerge) run(ctx context.Context, at *pebble.Snapshot, from, to day, verbs []schemas.Verb, visit func([]byte, []act)) error {
	for d := from; d <= to; d++ {
		if err := m.open(ctx, at, d); err != nil {
			return err
		}
	}
	heap.Init(m)
	var acts []act
	for n := 1; len(m.days) > 0; n++ {
		if n%ctxEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		first := m.days[0]
		row, err := first.rows.ValueAndErr()
		if err != nil {
			return err
		}
		if acts, err = appendActs(acts[:0], first.day, row, verbs); err != nil {
			return err
		}
		slices.SortStableFunc(acts, func(a, b act) int { return cmp.Compare(a.at, b.at) })
		visit(first.user(), acts)
		if err := m.next(); err != nil {
			return err
		}
	}
	return nil
}

// dayRows is the remaining rows of one day, by user.
type dayRows struct {
	day  day
	rows *pebble.Iterator
}

func (r dayRows) user() []byte { return r.rows.Key()[len(sequenceKey(0, "")):] }

// dayMerge is a heap of days with remaining rows, ordered by user and day.
type dayMerge struct{ days []dayRows }

func (m *dayMerge) open(ctx context.Context, at *pebble.Snapshot, d day) error {
	rows, err := at.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: sequenceKey(d, ""), UpperBound: sequenceKey(d+1, "")})
	if err != nil {
		return err
	}
	if !rows.First() {
		return rows.Close()
	}
	m.days = append(m.days, dayRows{d, rows})
	return nil
}

// next skips the first row.
func (m *dayMerge) next() error {
	if m.days[0].rows.Next() {
		heap.Fix(m, 0)
		return nil
	}
	return heap.Pop(m).(dayRows).rows.Close()
}

func (m *dayMerge) close() error {
	var errs []error
	for _, d := range m.days {
		errs = append(errs, d.rows.Close())
	}
	return errors.Join(errs...)
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (m *dayMerge) Len() int { return len(m.days) }

func (m *dayMerge) Less(i, j int) bool {
	a, b := m.days[i], m.days[j]
	return cmp.Or(bytes.Compare(a.user(), b.user()), cmp.Compare(a.day, b.day)) < 0
}

func (m *dayMerge) Swap(i, j int) { m.days[i], m.days[j] = m.days[j], m.days[i] }

func (m *dayMerge) Push(d any) { m.days = append(m.days, d.(dayRows)) }

func (m *dayMerge) Pop() any {
	last := m.days[len(m.days)-1]
	m.days = m.days[:len(m.days)-1]
	return last
}
