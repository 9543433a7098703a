package feature

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// ctxEvery is the number of rows between two checks of the deadline: some tens of microseconds.
const ctxEvery = 64

// Actions implements Store with one scan of the user's rows in the widest window. If there are more than
// Config.MaxActions rows, it reads the newest, and definitions that need more get the reason Cap. Sequences have
// separate rows. It reports no freshness; the Sink does.
func (s *EmbeddedStore) Actions(ctx context.Context, user schemas.UserID, span Span, defs []Definition) ([]Result, time.Time, error) {
	e := NewEvaluation(span, defs, s.cfg.MaxGroups)
	err := s.db.Use(func(db *pebble.DB) error {
		var errKept error
		if e.HasSequences() {
			errKept = s.readKept(ctx, db, user, span.Now, e)
		}
		if after, upTo := e.Wanted(); after >= upTo {
			return errKept
		}
		return errors.Join(errKept, scanTable(ctx, db, actionTable, func(it *pebble.Iterator) error {
			return s.scanActions(ctx, it, user, e)
		}))
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read actions of %s: %w", user, err)
	}
	return e.Results(), time.Time{}, nil
}

// scanTable calls f with an iterator over a snapshot of one table.
func scanTable(ctx context.Context, db *pebble.DB, table byte, f func(it *pebble.Iterator) error) error {
	it, err := db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: []byte{table}, UpperBound: []byte{table + 1}})
	if err != nil {
		return err
	}
	return errors.Join(f(it), it.Close())
}

func (s *EmbeddedStore) scanActions(ctx context.Context, it *pebble.Iterator, user schemas.UserID, e *Evaluation) error {
	a := newActionReader(user, &e.reads)
	for day := dayOf(e.widest.upTo); day >= dayOf(e.widest.after+1); day-- {
		prefix := dayPrefix(nil, actionTable, day, string(user))
		from := packed.AppendOrdered(bytes.Clone(prefix), ^e.widest.upTo)
		for it.SeekGE(from); it.Valid() && bytes.HasPrefix(it.Key(), prefix); it.Next() {
			more, err := s.scanAction(ctx, it, len(prefix), a, e)
			if err != nil || !more {
				return err
			}
		}
		if err := it.Error(); err != nil {
			return err
		}
	}
	return nil
}

// scanAction adds the row under the iterator to the evaluation. It returns false if no further row is needed.
func (s *EmbeddedStore) scanAction(ctx context.Context, it *pebble.Iterator, prefix int, a *actionReader, e *Evaluation) (bool, error) {
	t, ok := cutActionKey(it.Key()[prefix:])
	switch {
	case !ok:
		return false, packed.ErrTorn
	case t <= e.widest.after:
		return false, nil
	case e.seen%ctxEvery == 0 && ctx.Err() != nil:
		return false, ctx.Err()
	}
	a.Timestamp = schemas.Micros(t) * 1000
	if e.seen >= s.cfg.MaxActions {
		e.StopAt(a.Timestamp)
		return false, nil
	}
	value, err := it.ValueAndErr()
	if err == nil {
		err = a.read(value)
	}
	if err == nil {
		err = e.Add(&a.EnrichedAction)
	}
	return err == nil, err
}

// Items implements Store with one read per pin and day within the widest window.
func (s *EmbeddedStore) Items(ctx context.Context, pins []schemas.PinID, now schemas.Micros, defs []Definition) ([][]Result, time.Time, error) {
	out := make([][]Result, 0, len(pins))
	e := NewItemEvaluation(defs, now)
	err := s.eachPin(ctx, pins, func(db *pebble.DB, pin schemas.PinID) error {
		err := readItem(db, pin, e)
		out = append(out, e.results())
		return err
	})
	return out, time.Time{}, err
}

// eachPin calls read for each pin until it returns an error or ctx ends.
func (s *EmbeddedStore) eachPin(ctx context.Context, pins []schemas.PinID, read func(*pebble.DB, schemas.PinID) error) error {
	err := s.db.Use(func(db *pebble.DB) error {
		for _, pin := range pins {
			if err := errors.Join(ctx.Err(), read(db, pin)); err != nil {
				return fmt.Errorf("pin %s: %w", pin, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read pins: %w", err)
	}
	return nil
}

// readItem evaluates the rows of a pin.
func readItem(db *pebble.DB, pin schemas.PinID, e *ItemEvaluation) (err error) {
	e.begin()
	for day := dayOf(e.first()); e.counts && day <= dayOf(e.now); day++ {
		_, _, err := readRow(db, itemKey(nil, pin, day), 0, func(r *packed.Reader) struct{} {
			eachStep(r, func(s step) { e.addStep(millis(day)*dayMillis+millis(s.number)*stepMillis, s.counts, s.actors) })
			return struct{}{}
		})
		if err != nil {
			return err
		}
	}
	if e.means {
		e.mean, _, err = readRow(db, pinKey(nil, pin, actorsRow), 0, readVector)
	}
	return err
}

// Pins implements Store with two or three reads per pin.
func (s *EmbeddedStore) Pins(ctx context.Context, pins []schemas.PinID, embeddings bool) (map[schemas.PinID]PinAttributes, time.Time, error) {
	out := make(map[schemas.PinID]PinAttributes, len(pins))
	err := s.eachPin(ctx, pins, func(db *pebble.DB, pin schemas.PinID) error {
		own, known, err := readPin(db, pin, embeddings)
		if known {
			out[pin] = own
		}
		return err
	})
	return out, time.Time{}, err
}

// readPin returns the data of a pin. ok is false if it is unknown or was deleted.
func readPin(db *pebble.DB, pin schemas.PinID, embedding bool) (own PinAttributes, ok bool, err error) {
	c, found, err := readRow(db, pinKey(nil, pin, facetsRow), rankBytes, readFacets)
	if err != nil || !found || c.deleted {
		return PinAttributes{}, false, err
	}
	own.Facets = c.facets
	if own.Attributes, _, err = readRow(db, pinKey(nil, pin, attributesRow), rankBytes, readAttributes); err == nil && embedding {
		own.Embedding, _, err = readRow(db, pinKey(nil, pin, embeddingRow), rankBytes, readVector)
	}
	return own, err == nil, err
}
