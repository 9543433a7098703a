package feature

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/schemas"
)

// ctxEvery is the number of rows between two checks of the deadline: some tens of microseconds.
const ctxEvery = 64

// Actions implements Store with one scan of the user's rows in the widest window. If there are more than
// Config.MaxActions rows, it reads the newest, and definitions that need more get the reason Cap. It reports no
// freshness; the Sink does.
func (s *EmbeddedStore) Actions(ctx context.Context, user schemas.UserID, span Span, defs []Definition) ([]Result, time.Time, error) {
	p := newPlan(defs, span, s.cfg.MaxGroups)
	err := s.db.Use(func(db *pebble.DB) error {
		return scanTable(ctx, db, actionTable, func(it *pebble.Iterator) error {
			return s.scanActions(ctx, it, user, p)
		})
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read actions of %s: %w", user, err)
	}
	return p.results(), time.Time{}, nil
}

// scanTable calls f with an iterator over a snapshot of one table.
func scanTable(ctx context.Context, db *pebble.DB, table byte, f func(it *pebble.Iterator) error) error {
	it, err := db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: []byte{table}, UpperBound: []byte{table + 1}})
	if err != nil {
		return err
	}
	return errors.Join(f(it), it.Close())
}

func (s *EmbeddedStore) scanActions(ctx context.Context, it *pebble.Iterator, user schemas.UserID, p *plan) error {
	r := &row{actor: []byte(user)}
	var prefix, from []byte
	for day := dayOf(p.widest.upTo); day >= dayOf(p.widest.after+1); day-- {
		prefix = dayPrefix(prefix[:0], actionTable, day, string(user))
		from = appendMillis(append(from[:0], prefix...), ^p.widest.upTo)
		for it.SeekGE(from); it.Valid() && bytes.HasPrefix(it.Key(), prefix); it.Next() {
			more, err := s.scanAction(ctx, it, len(prefix), r, p)
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

// scanAction adds the row under the iterator to the plan. It returns false if no further row is needed.
func (s *EmbeddedStore) scanAction(ctx context.Context, it *pebble.Iterator, prefix int, r *row, p *plan) (bool, error) {
	t, ok := cutActionKey(it.Key()[prefix:])
	if !ok {
		return false, errCorrupt
	}
	if t <= p.widest.after {
		return false, nil
	}
	if p.seen >= s.cfg.MaxActions {
		p.stopAt(t)
		return false, nil
	}
	if p.seen%ctxEvery == 0 && ctx.Err() != nil {
		return false, ctx.Err()
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return false, err
	}
	r.time = t
	if err := r.decode(value); err != nil {
		return false, err
	}
	p.add(r)
	return true, nil
}

// arena makes strings of bytes without one allocation per string. A builder never moves text that it has written while
// it has room, so the returned substrings stay valid.
type arena struct {
	b    *strings.Builder
	size int // bytes per allocation; 0: arenaBytes
}

// arenaBytes holds some hundred rows of pins.
const arenaBytes = 16 << 10

func (a *arena) text(p []byte) string {
	if a.b == nil || a.b.Cap()-a.b.Len() < len(p) {
		a.b = new(strings.Builder)
		a.b.Grow(max(cmp.Or(a.size, arenaBytes), len(p)))
	}
	from := a.b.Len()
	a.b.Write(p)
	return a.b.String()[from:]
}

// Items implements Store with one read per pin and day within the widest window.
func (s *EmbeddedStore) Items(ctx context.Context, pins []schemas.PinID, now schemas.Micros, defs []Definition) ([][]Result, error) {
	out := make([][]Result, len(pins))
	p := newItemPlan(defs, floor(now))
	err := s.db.Use(func(db *pebble.DB) error {
		r := rowReader{db: db}
		for i, pin := range pins {
			if err := r.item(ctx, pin, p); err != nil {
				return fmt.Errorf("pin %s: %w", pin, err)
			}
			out[i] = p.results()
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	return out, nil
}

// rowReader reads rows by key.
type rowReader struct {
	db    *pebble.DB
	texts arena
	key   []byte // scratch
}

// item adds the data of a pin to the plan.
func (r *rowReader) item(ctx context.Context, pin schemas.PinID, p *itemPlan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.begin()
	if p.counts {
		for day := dayOf(p.first()); day <= dayOf(p.now); day++ {
			r.key = itemKey(r.key[:0], pin, day)
			value, _, err := r.get()
			if err == nil {
				err = p.addDay(day, value)
			}
			if err != nil {
				return err
			}
		}
	}
	if !p.means {
		return nil
	}
	r.key = pinKey(r.key[:0], pin, actorsRow)
	value, found, err := r.get()
	if err == nil && found {
		p.mean, err = decodeVector(value)
	}
	return err
}

// get returns a copy of the row with the key.
func (r *rowReader) get() (value string, found bool, err error) {
	bytes, closer, err := r.db.Get(r.key)
	if errors.Is(err, pebble.ErrNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return r.texts.text(bytes), true, closer.Close()
}

// Pins implements Store with two or three reads per pin.
func (s *EmbeddedStore) Pins(ctx context.Context, pins []schemas.PinID, embeddings bool) (map[schemas.PinID]PinAttributes, error) {
	out := make(map[schemas.PinID]PinAttributes, len(pins))
	err := s.db.Use(func(db *pebble.DB) error {
		r := rowReader{db: db}
		for _, pin := range pins {
			if err := ctx.Err(); err != nil {
				return err
			}
			a, known, err := r.pin(pin, embeddings)
			if err != nil {
				return fmt.Errorf("pin %s: %w", pin, err)
			}
			if known {
				out[pin] = a
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read pins: %w", err)
	}
	return out, nil
}

// pin returns the data of a pin. ok is false if it has no card or was deleted.
func (r *rowReader) pin(pin schemas.PinID, embedding bool) (known PinAttributes, ok bool, err error) {
	card, found, err := r.ranked(pin, cardRow)
	if err != nil || !found {
		return PinAttributes{}, false, err
	}
	if known.Facets, ok, err = decodeCard(card); !ok {
		return PinAttributes{}, false, err
	}
	attributes, found, err := r.ranked(pin, attributesRow)
	if err == nil && found {
		known.Attributes, err = decodeAttributes(attributes)
	}
	if err != nil || !embedding {
		return known, err == nil, err
	}
	vector, found, err := r.ranked(pin, embeddingRow)
	if err == nil && found {
		known.Embedding, err = decodeVector(vector)
	}
	return known, err == nil, err
}

// ranked returns a row of a pin without its rank.
func (r *rowReader) ranked(pin schemas.PinID, row byte) (value string, found bool, err error) {
	r.key = pinKey(r.key[:0], pin, row)
	value, found, err = r.get()
	if err != nil || !found {
		return "", false, err
	}
	if len(value) < rankBytes {
		return "", false, errCorrupt
	}
	return value[rankBytes:], true, nil
}
