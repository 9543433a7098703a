package feature

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/schemas"
)

// ctxEvery is how many rows are read between two looks at the deadline: some tens of microseconds.
const ctxEvery = 64

// Actions implements Store with one scan of the user's rows in the widest window. Beyond Config.MaxActions rows it looks
// at the newest, and names what needed more with the reason Cap.
func (s *EmbeddedStore) Actions(ctx context.Context, user schemas.UserID, span Span, defs []Definition) ([]Result, error) {
	p := newPlan(defs, span, s.cfg.MaxGroups)
	err := s.use(func(db *pebble.DB) error {
		return scanTable(ctx, db, actionTable, func(it *pebble.Iterator) error {
			return s.scanActions(ctx, it, user, p)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read actions of %s: %w", user, err)
	}
	return p.results(), nil
}

// scanTable gives f an iterator over one table: one moment of it.
func scanTable(ctx context.Context, db *pebble.DB, table byte, f func(it *pebble.Iterator) error) error {
	it, err := db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: []byte{table}, UpperBound: []byte{table + 1}})
	if err != nil {
		return err
	}
	return errors.Join(f(it), it.Close())
}

func (s *EmbeddedStore) scanActions(ctx context.Context, it *pebble.Iterator, user schemas.UserID, p *plan) error {
	r := &row{actor: string(user)}
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

// scanAction gives the row under the iterator to the plan; false when no further row is wanted.
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
	if err := r.decode(string(value)); err != nil {
		return false, err
	}
	p.add(r)
	return true, nil
}

// Items implements Store with one scan a pin in the widest window.
func (s *EmbeddedStore) Items(ctx context.Context, pins []schemas.PinID, now schemas.Micros, defs []Definition) ([][]Result, error) {
	out := make([][]Result, len(pins))
	err := s.use(func(db *pebble.DB) error {
		return scanTable(ctx, db, itemTable, func(it *pebble.Iterator) error {
			for i, pin := range pins {
				p := newItemPlan(defs, floor(now))
				if err := scanItems(ctx, it, pin, p); err != nil {
					return fmt.Errorf("pin %s: %w", pin, err)
				}
				out[i] = p.results()
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read item counts: %w", err)
	}
	return out, nil
}

func scanItems(ctx context.Context, it *pebble.Iterator, pin schemas.PinID, p *itemPlan) error {
	first, last := p.first(), p.now
	var prefix, from []byte
	for day := dayOf(first); day <= dayOf(last); day++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		prefix = dayPrefix(prefix[:0], itemTable, day, string(pin))
		from = appendMillis(append(from[:0], prefix...), first)
		for it.SeekGE(from); it.Valid() && bytes.HasPrefix(it.Key(), prefix); it.Next() {
			if err := scanStep(it, len(prefix), p); err != nil {
				return err
			}
		}
		if err := it.Error(); err != nil {
			return err
		}
	}
	return nil
}

func scanStep(it *pebble.Iterator, prefix int, p *itemPlan) error {
	start, ok := cutItemKey(it.Key()[prefix:])
	if !ok {
		return errCorrupt
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return err
	}
	return p.add(start, string(value))
}

// Pins implements Store with two gets a pin.
func (s *EmbeddedStore) Pins(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]PinAttributes, error) {
	out := make(map[schemas.PinID]PinAttributes, len(pins))
	err := s.use(func(db *pebble.DB) error {
		for _, pin := range pins {
			if err := ctx.Err(); err != nil {
				return err
			}
			a, known, err := readPin(db, pin)
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

// readPin returns what is known of a pin that was not deleted: attributes from its newest action, facets from its newest
// card, or without one from the action too.
func readPin(db *pebble.DB, pin schemas.PinID) (PinAttributes, bool, error) {
	card, err := getPin(db, pin, cardRow)
	if err != nil || card.deleted {
		return PinAttributes{}, false, err
	}
	action, err := getPin(db, pin, actionRow)
	if err != nil {
		return PinAttributes{}, false, err
	}
	known := PinAttributes{Facets: card.Facets, Attributes: action.Attributes}
	if !card.found {
		known.Facets = action.Facets
	}
	return known, card.found || action.found, nil
}

type pinRow struct {
	PinAttributes
	found, deleted bool
}

func getPin(db *pebble.DB, pin schemas.PinID, row byte) (pinRow, error) {
	value, closer, err := db.Get(pinKey(nil, pin, row))
	if errors.Is(err, pebble.ErrNotFound) {
		return pinRow{}, nil
	}
	if err != nil {
		return pinRow{}, err
	}
	defer closer.Close()
	if len(value) <= rankBytes {
		return pinRow{}, errCorrupt
	}
	r := pinRow{found: true, deleted: value[rankBytes] == 1}
	r.Facets, r.Attributes, err = decodePin(string(value[rankBytes+1:]))
	return r, err
}
