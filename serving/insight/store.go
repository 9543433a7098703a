package insight

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// The keys of the store. Numbers are big-endian.
//
//	'u' user           → activity.encode
//	's' day, user      → acts: microseconds of the day (varint), verb (text)…, in the order of arrival
//	'h' interest       → 7 × 24 varints: actions by weekday and hour
//	'o' partition      → topics.PartitionCheckpoint: the applied offset
//	'v'                → the format version, see stored.Open
const (
	userTable     = 'u'
	sequenceTable = 's'
	hoursTable    = 'h'
	offsetTable   = 'o'
)

// Store holds the rows, on Pebble. Reads may run concurrently with one Apply.
type Store struct {
	dir string
	db  *stored.DB
}

// ErrClosed is returned by every method of a closed store.
var ErrClosed = errors.New("insight store is closed")

// remedy is what an operator does if the store cannot be used.
const remedy = "stop the process and delete the directory: the store is filled again from the topic"

// Open opens the store in dir and creates it if necessary. It returns an error if another process has it open, or if a
// release with other rows wrote it. The caller must call Close.
func Open(dir string, log *slog.Logger) (*Store, error) {
	db, err := stored.Open(dir, stored.Format{Version: rowVersion, Remedy: remedy}, &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest,
		MemTableSize:       8 << 20, // writes are few and rewrite the same rows of users, days and interests
		Logger:             stored.Logger(log, "insight store"),
	})
	if err != nil {
		return nil, fmt.Errorf("open insight store: %w", err)
	}
	return &Store{dir: dir, db: stored.Guard(db, ErrClosed)}, nil
}

// Close closes the store after the calls in flight have returned.
func (s *Store) Close() error { return s.db.Close() }

// Applied is an action with its position in the topic.
type Applied struct {
	Partition int32
	Offset    int64
	Action    *schemas.EnrichedAction // nil: a record to ignore
}

// Apply writes records durably, each once: it skips records below the applied offset of their partition. to has the
// applied offsets after the records, by partition. Only one call may run at a time.
func (s *Store) Apply(records []Applied, to map[int32]topics.PartitionCheckpoint) error {
	err := s.db.Use(func(db *pebble.DB) error {
		w := &writer{db: db, rows: map[string][]byte{}}
		for _, r := range records {
			if err := w.record(r); err != nil {
				return err
			}
		}
		if err := w.checkpoint(to); err != nil {
			return err
		}
		batch := db.NewBatch()
		defer batch.Close()
		for key, value := range w.rows {
			if err := batch.Set([]byte(key), value, nil); err != nil {
				return err
			}
		}
		return batch.Commit(pebble.Sync)
	})
	if err != nil {
		return fmt.Errorf("apply insights: %w", err)
	}
	return nil
}

// writer collects the new values of rows.
type writer struct {
	db   *pebble.DB
	rows map[string][]byte
}

// get returns a row with the changes of this writer, or nil if there is none.
func (w *writer) get(key []byte) ([]byte, error) {
	if value, ok := w.rows[string(key)]; ok {
		return value, nil
	}
	return stored.Row(w.db, key)
}

func (w *writer) record(r Applied) error {
	mark, err := w.mark(r.Partition)
	if err != nil || mark.Next > r.Offset {
		return err
	}
	mark.Next = r.Offset + 1
	w.rows[string(checkpointKey(r.Partition))] = mark.Bytes()
	if r.Action == nil {
		return nil
	}
	return errors.Join(w.user(r.Action), w.sequence(r.Action), w.hours(r.Action))
}

func checkpointKey(partition int32) []byte {
	return binary.BigEndian.AppendUint32([]byte{offsetTable}, uint32(partition))
}

// mark returns the applied offset of a partition.
func (w *writer) mark(partition int32) (topics.PartitionCheckpoint, error) {
	row, err := w.get(checkpointKey(partition))
	if err != nil || row == nil {
		return topics.PartitionCheckpoint{}, err
	}
	return topics.ParseCheckpoint(row)
}

// checkpoint advances the applied offsets of partitions.
func (w *writer) checkpoint(to map[int32]topics.PartitionCheckpoint) error {
	for partition, mark := range to {
		was, err := w.mark(partition)
		if err != nil {
			return err
		}
		if mark.Next >= was.Next {
			w.rows[string(checkpointKey(partition))] = mark.Bytes()
		}
	}
	return nil
}

// Checkpoint returns the applied offset of each partition.
func (s *Store) Checkpoint() (map[int32]topics.PartitionCheckpoint, error) {
	marks := map[int32]topics.PartitionCheckpoint{}
	err := s.each(context.Background(), []byte{offsetTable}, func(key, value []byte) error {
		mark, err := topics.ParseCheckpoint(value)
		if err != nil || len(key) != 4 {
			return errors.Join(packed.ErrTorn, err)
		}
		marks[int32(binary.BigEndian.Uint32(key))] = mark
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read insight checkpoint: %w", err)
	}
	return marks, nil
}

func (w *writer) user(e *schemas.EnrichedAction) error {
	key := append([]byte{userTable}, e.Actor...)
	value, err := w.get(key)
	if err != nil {
		return err
	}
	a, err := decodeActivity(value)
	if err != nil {
		return err
	}
	a.add(dayOf(e.Timestamp))
	w.rows[string(key)] = a.encode()
	return nil
}

func (w *writer) hours(e *schemas.EnrichedAction) error {
	d := dayOf(e.Timestamp)
	hour := int((e.Timestamp - d.start()) / 3600e6)
	for _, interest := range unique(e.ObjectAttributes.Interests) {
		key := append([]byte{hoursTable}, interest...)
		value, err := w.get(key)
		if err != nil {
			return err
		}
		p, err := decodeHours(value)
		if err != nil {
			return err
		}
		p.Hours[d.weekday()][hour]++
		w.rows[string(key)] = p.encode()
	}
	return nil
}

func unique(ids []schemas.InterestID) []schemas.InterestID {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (p *Popular) encode() []byte {
	b := []byte{rowVersion}
	for _, hours := range p.Hours {
		for _, n := range hours {
			b = binary.AppendVarint(b, int64(n))
		}
	}
	return b
}

// decodeHours is the reverse of encode. No bytes are an interest without actions.
func decodeHours(b []byte) (p Popular, err error) {
	if len(b) == 0 {
		return p, nil
	}
	r := packed.NewVersionReader(b, rowVersion)
	for d := range p.Hours {
		for h := range p.Hours[d] {
			p.Hours[d][h] = uint64(r.Varint())
			p.Actions += p.Hours[d][h]
		}
	}
	return p, r.End()
}

// ctxEvery is the number of rows between two checks of the deadline.
const ctxEvery = 256

// each visits the rows of a table from a key on.
func (s *Store) each(ctx context.Context, from []byte, visit func(key, value []byte) error) error {
	return s.db.Use(func(db *pebble.DB) error {
		it, err := db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: from, UpperBound: []byte{from[0] + 1}})
		if err != nil {
			return err
		}
		defer it.Close()
		n := 0
		for it.First(); it.Valid(); it.Next() {
			if n++; n%ctxEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			value, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			if err := visit(it.Key()[1:], value); err != nil {
				return err
			}
		}
		return it.Error()
	})
}

func (s *Store) eachUser(ctx context.Context, visit func(schemas.UserID, *activity)) error {
	return s.each(ctx, []byte{userTable}, func(key, value []byte) error {
		a, err := decodeActivity(value)
		if err != nil {
			return err
		}
		visit(schemas.UserID(key), &a)
		return nil
	})
}

// popular returns the n interests with the most actions.
func (s *Store) popular(ctx context.Context, n int) ([]Popular, error) {
	most := mostPopular{n: n, all: make([]Popular, 0, 2*n)}
	err := s.each(ctx, []byte{hoursTable}, func(interest, value []byte) error {
		p, err := decodeHours(value)
		p.Interest = schemas.InterestID(interest)
		most.add(p)
		return err
	})
	most.trim()
	return most.all, err
}

// Sweep deletes all sequences except those of the given number of days up to now.
func (s *Store) Sweep(now time.Time, days int) error {
	err := s.db.Use(func(db *pebble.DB) error {
		return db.DeleteRange([]byte{sequenceTable}, sequenceKey(dayOf(schemas.MicrosOf(now))-day(days)+1, ""), pebble.Sync)
	})
	if err != nil {
		return fmt.Errorf("sweep insights: %w", err)
	}
	return nil
}

// Erase deletes the rows of users: their activity, and their sequences of the given number of days up to now. The hours
// of interests keep their anonymous share. A user without rows costs one read.
func (s *Store) Erase(users []schemas.UserID, now time.Time, days int) error {
	err := s.db.Use(func(db *pebble.DB) error {
		batch := db.NewBatch()
		defer batch.Close()
		for _, user := range users {
			if err := eraseUser(db, batch, user, dayOf(schemas.MicrosOf(now)), day(days)); err != nil {
				return err
			}
		}
		if batch.Empty() {
			return nil
		}
		return batch.Commit(pebble.Sync)
	})
	if err != nil {
		return fmt.Errorf("erase users of insights: %w", err)
	}
	return nil
}

func eraseUser(db *pebble.DB, batch *pebble.Batch, user schemas.UserID, today, days day) error {
	key := append([]byte{userTable}, user...)
	row, err := stored.Row(db, key)
	if err != nil || row == nil {
		return err
	}
	err = batch.Delete(key, nil)
	for d := today - days; d <= today+1 && err == nil; d++ { // an action may be minutes ahead
		err = batch.Delete(sequenceKey(d, string(user)), nil)
	}
	return err
}
