package feature

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Store evaluates definitions over the data that it stores. With each result, it returns the arrival time of the newest
// record in the part of the store, usually a partition, that holds the data, and of several parts the earliest. The time is
// zero if the store does not report it.
type Store interface {
	// Actions evaluates definitions of entity user or pair over one user's actions, as Reference does. It returns the
	// results in the order of the definitions.
	Actions(ctx context.Context, user schemas.UserID, span Span, defs []Definition) (results []Result, fresh time.Time, err error)
	// Items evaluates definitions of entity pin over the counts of each pin, as ReferenceItems does. It returns the
	// results of each pin in the order of the definitions.
	Items(ctx context.Context, pins []schemas.PinID, now schemas.Micros, defs []Definition) (results [][]Result, fresh time.Time, err error)
	// Pins returns the data of the pins themselves, with embeddings on request. Unknown and deleted pins are not in the
	// map.
	Pins(ctx context.Context, pins []schemas.PinID, embeddings bool) (known map[schemas.PinID]PinAttributes, fresh time.Time, err error)
}

// PinAttributes is the data of a pin, as of its newest version.
type PinAttributes struct {
	schemas.Facets
	Attributes map[string]string
	Embedding  []float32 // empty: none, or not requested
}

// Batch is the data of one durable Write.
type Batch struct {
	Actions    []*schemas.EnrichedAction
	Counts     []*schemas.ItemCounts
	Pins       []*schemas.PinAttributes
	Checkpoint topics.Checkpoint // applied offsets after this batch
}

// ErrClosed is returned by every method of a closed store.
var ErrClosed = errors.New("feature store is closed")

// EmbeddedStore is the Store of one machine, on Pebble. It is safe for concurrent use.
type EmbeddedStore struct {
	cfg Config
	now func() time.Time
	db  *stored.DB

	items sync.Mutex // held while days of pins are read and rewritten
}

// remedy is what an operator does if the store cannot be used.
const remedy = "stop the process and delete the directory: the store is filled again from the topics"

// OpenEmbedded opens the store in dir and creates it if necessary. It returns an error if another process has it open, or
// if a release with other rows wrote it. The caller must call Close.
func OpenEmbedded(dir string, cfg Config, log *slog.Logger, now func() time.Time) (*EmbeddedStore, error) {
	cache := pebble.NewCache(int64(cfg.BlockCacheBytes))
	defer cache.Unref() // the database holds its own reference
	db, err := stored.Open(dir, stored.Format{Version: rowVersion, Remedy: remedy}, options(cache, log))
	if err != nil {
		return nil, fmt.Errorf("open feature store: %w", err)
	}
	return &EmbeddedStore{cfg: cfg, now: now, db: stored.Guard(db, ErrClosed)}, nil
}

// options sets all options of Pebble.
func options(cache *pebble.Cache, log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		FormatMajorVersion:          pebble.FormatNewest, // no older program reads the store: it can be filled again from the topics
		Cache:                       cache,
		Merger:                      stored.Greatest("smartfeed.feature.newest"), // writers need no read: the highest rank of a key remains
		MemTableSize:                16 << 20,                                    // some 50,000 actions per flush
		MemTableStopWritesThreshold: 3,                                           // two being flushed and one being filled; then writes wait, which bounds the memory
		L0CompactionThreshold:       4,                                           // overlapping files that a scan may have to read …
		L0StopWritesThreshold:       24,                                          // … and the number at which writes wait for compaction
		MaxOpenFiles:                1000,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 }, // the machine has other work
		Logger:                      stored.Logger(log, "feature store"),
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { log.Warn("feature store: background work failed", "error", err) },
		},
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = 16 << 10 // a scan reads a run of one actor's rows
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// Close closes the store after the calls in flight have returned. Later calls return ErrClosed. Further calls of Close
// do nothing.
func (s *EmbeddedStore) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close feature store: %w", err)
	}
	return nil
}

// Write writes a batch to disk before it returns. Actions and pins may be repeated, in any order, without
// effect. If a step is written twice, the later counts replace the earlier ones. Expired data is not written.
func (s *EmbeddedStore) Write(batch Batch) error {
	err := s.db.Use(func(db *pebble.DB) error {
		w := &writer{db: db, batch: db.NewBatch(), days: map[string][]step{}}
		now := schemas.MicrosOf(s.now())
		w.kept, w.keptInSequences = keptAfter(now), s.cfg.sequencesAfter(now)
		defer w.batch.Close()
		if len(batch.Counts) > 0 {
			s.items.Lock()
			defer s.items.Unlock()
		}
		if err := w.all(batch); err != nil {
			return err
		}
		return w.batch.Commit(pebble.Sync)
	})
	if err != nil {
		return fmt.Errorf("write features: %w", err)
	}
	return nil
}

// writer turns records into the rows of one batch.
type writer struct {
	db              *pebble.DB
	batch           *pebble.Batch
	kept            millis            // only later data is kept
	keptInSequences millis            // only later actions are kept for sequences
	days            map[string][]step // days of pins, by key, with the steps of this batch
	key, value      []byte
}

func (w *writer) all(b Batch) error {
	err := errors.Join(each(b.Actions, w.action), each(b.Actions, w.keep), each(b.Counts, w.counts), each(b.Pins, w.pin))
	if err != nil {
		return err
	}
	for key, steps := range w.days {
		if err := w.batch.Set([]byte(key), appendSteps(nil, steps), nil); err != nil {
			return err
		}
	}
	return w.checkpoint(b.Checkpoint)
}

// each calls write for each record until it returns an error.
func each[T any](records []*T, write func(*T) error) error {
	for _, r := range records {
		if err := write(r); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) checkpoint(at topics.Checkpoint) error {
	for topic, partitions := range at {
		for partition, mark := range partitions {
			if err := w.batch.Set(checkpointKey(nil, topic, partition), mark.Bytes(), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) action(a *schemas.EnrichedAction) error {
	t := floor(a.Timestamp)
	if t <= w.kept {
		return nil
	}
	w.key = actionKey(w.key[:0], a.Actor, t, a.ID)
	w.value = appendAction(w.value[:0], a)
	return w.batch.Set(w.key, w.value, nil)
}

func (w *writer) counts(c *schemas.ItemCounts) error {
	if err := w.mean(c); err != nil {
		return err
	}
	start := floor(c.Start)
	if start+stepMillis <= w.kept {
		return nil
	}
	key := itemKey(nil, c.Pin, dayOf(start))
	steps, ok := w.days[string(key)]
	if !ok {
		var err error
		if steps, _, err = readRow(w.db, key, 0, readSteps); err != nil {
			return fmt.Errorf("pin %s: %w", c.Pin, err)
		}
	}
	w.days[string(key)] = putStep(steps, step{stepOf(start), positive(c.Counts), c.Actors})
	return nil
}

// mean writes the mean of a pin's recent actors. It skips a deleted pin, whose deletion may arrive before its last counts.
func (w *writer) mean(c *schemas.ItemCounts) error {
	if len(c.Embedding) == 0 {
		return nil
	}
	pin, _, err := readRow(w.db, pinKey(nil, c.Pin, facetsRow), rankBytes, readFacets)
	if err != nil || pin.deleted {
		return err
	}
	w.key = pinKey(w.key[:0], c.Pin, actorsRow)
	w.value = appendVector(append(w.value[:0], rowVersion), c.Embedding)
	return w.batch.Set(w.key, w.value, nil)
}

func (w *writer) pin(p *schemas.PinAttributes) error {
	facets := p.AppendBinary(packed.AppendFlag(appendRank(nil, p.Version), p.Deleted))
	err := errors.Join(
		w.merge(p.Pin, facetsRow, facets),
		w.merge(p.Pin, attributesRow, appendAttributes(appendRank(nil, p.Version), p.Attributes)),
		w.merge(p.Pin, embeddingRow, appendVector(appendRank(nil, p.Version), p.Embedding)),
	)
	if err != nil || !p.Deleted {
		return err
	}
	w.key = pinKey(w.key[:0], p.Pin, actorsRow)
	return w.batch.Delete(w.key, nil)
}

// merge writes a row of a pin, unless the store has one of a higher rank.
func (w *writer) merge(pin schemas.PinID, row byte, value []byte) error {
	w.key = pinKey(w.key[:0], pin, row)
	return w.batch.Merge(w.key, value, nil)
}

// Checkpoint returns the applied offsets: the last ones that Write received for each partition.
func (s *EmbeddedStore) Checkpoint() (topics.Checkpoint, error) {
	at := topics.Checkpoint{}
	err := s.db.Use(func(db *pebble.DB) error {
		return scanTable(context.Background(), db, markTable, func(it *pebble.Iterator) (err error) {
			for it.First(); it.Valid() && err == nil; it.Next() {
				err = readCheckpoint(at, it.Key(), it.Value())
			}
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read feature checkpoint: %w", err)
	}
	return at, nil
}

func readCheckpoint(at topics.Checkpoint, key, value []byte) error {
	topic, partition, ok := cutCheckpointKey(key)
	mark, err := topics.ParseCheckpoint(value)
	if !ok || err != nil {
		return fmt.Errorf("row %q: %w", key, errors.Join(packed.ErrTorn, err))
	}
	at.Set(topic, partition, mark)
	return nil
}

// Sweep deletes the days and periods that are fully expired, and the actions of deleted users that are kept for sequences.
func (s *EmbeddedStore) Sweep(deleted func(schemas.UserID) bool) error {
	now := schemas.MicrosOf(s.now())
	kept, sequences := keptAfter(now), s.cfg.sequencesAfter(now)
	err := s.db.Use(func(db *pebble.DB) error {
		return errors.Join(
			dropDays(db, actionTable, dayOf(kept)),
			dropDays(db, itemTable, dayOf(kept-stepMillis)),
			dropDays(db, sequenceTable, periodOf(sequences)),
			dropDeleted(db, deleted),
		)
	})
	if err != nil {
		return fmt.Errorf("sweep features: %w", err)
	}
	return nil
}

// KeptUntil returns the latest time at which an action of a deleted user, which arrived at the given time, is deleted,
// provided that a process has the store open. Actions are deleted by UTC day, which may be the next one (schemas.MaxAhead): by the
// first sweep after the day has expired.
func (c Config) KeptUntil(arrived time.Time) time.Time {
	const day = 24 * time.Hour
	newest := arrived.UTC().Add(schemas.MaxAhead).Truncate(day)
	return newest.Add(day + Kept + c.SweepInterval)
}

// dropDays deletes the days of a table before first. It writes nothing if there are none, because range tombstones slow
// down reads.
func dropDays(db *pebble.DB, table byte, first int32) error {
	from, to := []byte{table}, appendDay(nil, table, first)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	found := it.First()
	if err := it.Close(); err != nil || !found {
		return err
	}
	return db.DeleteRange(from, to, pebble.Sync)
}
