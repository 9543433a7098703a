package feature

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// The embedded store keeps an action for sequences in one of MaxSequence rows per user and period. The action with the
// number n + MaxSequence replaces the one with the number n, so that a write needs no read.

// periodDays is the number of days of a period. Like a day of actions, it expires with one range deletion.
const periodDays = 10

func periodOf(t millis) int32 { return int32(floorDiv(t, periodDays*dayMillis)) }

func sequenceKey(dst []byte, a *schemas.EnrichedAction) []byte {
	dst = dayPrefix(dst, sequenceTable, periodOf(floor(a.Timestamp)), string(a.Actor))
	return binary.BigEndian.AppendUint16(dst, uint16(a.Number%MaxSequence))
}

// keep writes an action for sequences.
func (w *writer) keep(a *schemas.EnrichedAction) error {
	if a.Number <= 0 || floor(a.Timestamp) <= w.keptInSequences {
		return nil
	}
	w.key = sequenceKey(w.key[:0], a)
	w.value = packed.AppendOrdered(packed.AppendOrdered(w.value[:0], a.Number), floor(a.Timestamp))
	w.value = append(binary.BigEndian.AppendUint16(w.value, uint16(len(a.ID))), a.ID...)
	w.value = appendAction(w.value, a)
	return w.batch.Merge(w.key, w.value, nil)
}

// readKept adds the kept actions of the user to the sequences.
func (s *EmbeddedStore) readKept(ctx context.Context, db *pebble.DB, user schemas.UserID, now schemas.Micros, e *Evaluation) error {
	var all []*schemas.EnrichedAction
	after, end := s.cfg.sequencesAfter(now), periodOf(floor(now+schemas.MicrosIn(schemas.MaxAhead)))
	err := scanTable(ctx, db, sequenceTable, func(it *pebble.Iterator) error {
		for period := periodOf(after + 1); period <= end; period++ {
			prefix := dayPrefix(nil, sequenceTable, period, string(user))
			for it.SeekGE(prefix); it.Valid() && bytes.HasPrefix(it.Key(), prefix); it.Next() {
				a, err := readKept(user, it.Value(), &e.reads)
				if err != nil {
					return err
				}
				if floor(a.Timestamp) > after {
					all = append(all, &a.EnrichedAction)
				}
			}
		}
		return it.Error()
	})
	e.AddKept(all, true)
	return err
}

// readKept reads the output of keep.
func readKept(user schemas.UserID, row []byte, fields *reads) (*actionReader, error) {
	const head = 8 + 8 + 2 // number, time, length of the id
	a := newActionReader(user, fields)
	if len(row) < head || len(row) < head+int(binary.BigEndian.Uint16(row[head-2:])) {
		return nil, packed.ErrTorn
	}
	a.Number = packed.FirstOrdered[int64](row)
	a.Timestamp = packed.FirstOrdered[schemas.Micros](row[8:]) * 1000
	id := row[head : head+int(binary.BigEndian.Uint16(row[head-2:]))]
	a.ID = string(id)
	return a, a.read(row[head+len(id):])
}

// dropDeleted deletes the actions of deleted users that are kept for sequences.
func dropDeleted(db *pebble.DB, deleted func(schemas.UserID) bool) error {
	return scanTable(context.Background(), db, sequenceTable, func(it *pebble.Iterator) error {
		const start = 1 + 4 // table and period
		for it.First(); it.Valid(); {
			end := start + bytes.IndexByte(it.Key()[start:], 0)
			from, to := bytes.Clone(it.Key()[:end+1]), append(bytes.Clone(it.Key()[:end]), 1)
			if deleted(schemas.UserID(from[start:end])) {
				if err := db.DeleteRange(from, to, pebble.Sync); err != nil {
					return err
				}
			}
			it.SeekGE(to)
		}
		return it.Error()
	})
}
