package pinot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// Store is the feature.Store whose rows are in Pinot.
type Store struct {
	cfg    feature.Config
	client *Client
}

// NewStore returns a store. cfg limits the result of a read.
func NewStore(cfg feature.Config, client *Client) *Store { return &Store{cfg: cfg, client: client} }

// Actions implements feature.Store with one query for the windows and one for sequences, and more if the first result has too
// many bytes. The queries read only the user's partition, so the freshness is that of the partition.
func (s *Store) Actions(
	ctx context.Context, user schemas.UserID, span feature.Span, defs []feature.Definition,
) (results []feature.Result, fresh time.Time, err error) {
	e, r := feature.NewEvaluation(span, defs, s.cfg.MaxGroups), reading{client: s.client}
	isSequence := func(d feature.Definition) bool { return d.Aggregate == feature.TakeSequence }
	windowed := slices.DeleteFunc(slices.Clone(defs), isSequence)
	sequences := slices.DeleteFunc(slices.Clone(defs), func(d feature.Definition) bool { return !isSequence(d) })
	if err := errors.Join(s.addNewest(ctx, &r, user, windowed, e), s.addKept(ctx, &r, user, span.Now, sequences, e)); err != nil {
		return nil, time.Time{}, err
	}
	return e.Results(), r.fresh, nil
}

// addNewest adds the actions in the windows of the definitions.
func (s *Store) addNewest(ctx context.Context, r *reading, user schemas.UserID, defs []feature.Definition, e *feature.Evaluation) error {
	after, upTo := e.Wanted()
	if after >= upTo {
		return nil
	}
	p, err := r.newest(ctx, user, s.cfg.MaxActions+1, func(limit int) statement { return ofUser(user, defs, after, upTo, limit) })
	if err != nil {
		return err
	}
	for _, a := range p.actions {
		if err := errors.Join(ctx.Err(), e.Add(a)); err != nil { // many groups take time
			return err
		}
	}
	if p.more {
		e.StopAt(min(p.from, schemas.Micros(upTo)*1000))
	}
	return nil
}

// addKept adds the actions that are kept for sequences. While a row moves to another segment, Pinot may return it twice.
func (s *Store) addKept(ctx context.Context, r *reading, user schemas.UserID, now schemas.Micros, defs []feature.Definition, e *feature.Evaluation) error {
	if len(defs) == 0 {
		return nil
	}
	after := (int64(now) - s.cfg.SequenceRetention.Microseconds()) / 1000
	most := 2*len(literals(string(user)))*feature.MaxSequence + 1
	p, err := r.newest(ctx, user, most, func(limit int) statement { return ofSequences(user, defs, after, limit) })
	if err != nil {
		return err
	}
	e.AddKept(p.actions, !p.more)
	return nil
}

// page holds the first rows of a query for actions.
type page struct {
	actions []*schemas.EnrichedAction // of the user, newest first
	more    bool                      // there are others
	from    schemas.Micros            // if so, older ones are at this time or earlier
}

// newest reads rows of a user, up to one above the limit of the caller to see whether there are more. If the answer would exceed
// Config.MaxResponseBytes, it requests half as many, so that a user with wide rows does not count as a failure of the store.
func (r *reading) newest(ctx context.Context, user schemas.UserID, limit int, of func(limit int) statement) (page, error) {
	q := of(limit)
	a, err := r.client.query(ctx, q.sql, len(q.columns))
	switch {
	case errors.Is(err, ErrTooLarge) && limit > 1:
		return r.newest(ctx, user, limit/2, of)
	case err != nil:
		return page{}, err
	}
	r.note(a)
	var p page
	p.actions, err = a.actions(q.columns)
	if err == nil && len(p.actions) >= limit {
		p.actions, p.more, p.from = p.actions[:limit-1], true, p.actions[limit-1].Timestamp
	}
	p.actions = slices.DeleteFunc(p.actions, func(a *schemas.EnrichedAction) bool { return a.Actor != user }) // see ambiguous
	return p, err
}

// actions returns the actions of an answer in the order that features require. Pinot compares ids by UTF-16, not by bytes.
func (a answer) actions(columns []column) ([]*schemas.EnrichedAction, error) {
	actions := make([]*schemas.EnrichedAction, 0, len(a.rows))
	err := a.each(columns, func(r *row) { actions = append(actions, new(r.EnrichedAction)) })
	slices.SortStableFunc(actions, func(a, b *schemas.EnrichedAction) int {
		return cmp.Or(cmp.Compare(b.Timestamp, a.Timestamp), cmp.Compare(b.ID, a.ID))
	})
	return actions, err
}

// each calls visit with each row, which is valid until visit returns.
func (a answer) each(columns []column, visit func(*row)) error {
	var r row // one for all, because it is large
	for _, values := range a.rows {
		r = row{}
		for i, c := range columns {
			if err := c.read(&r, values[i]); err != nil {
				return fmt.Errorf("read answer of pinot: %w", err)
			}
		}
		visit(&r)
	}
	return nil
}

// Items implements feature.Store with one query for all pins. Means of recent actors need two more, because Pinot keeps the
// mean of a deleted pin.
func (s *Store) Items(ctx context.Context, pins []schemas.PinID, now schemas.Micros, defs []feature.Definition) ([][]feature.Result, time.Time, error) {
	e, r := feature.NewItemEvaluation(defs, now), reading{client: s.client}
	counts := map[schemas.PinID][]schemas.ItemCounts{}
	if err := errors.Join(r.counts(ctx, pins, e, counts), r.means(ctx, pins, e, counts)); err != nil {
		return nil, time.Time{}, err
	}
	return convert.All(pins, func(pin schemas.PinID) []feature.Result { return e.Evaluate(counts[pin]) }), r.fresh, nil
}

// Pins implements feature.Store with one query.
func (s *Store) Pins(ctx context.Context, pins []schemas.PinID, embeddings bool) (map[schemas.PinID]feature.PinAttributes, time.Time, error) {
	names := []string{pinColumn, "author", "board", "interests", "language", "attributesMap"}
	if embeddings {
		names = append(names, embeddingColumn)
	}
	all, r := make(map[schemas.PinID]feature.PinAttributes, len(pins)), reading{client: s.client}
	q := pinQuery{table: PinsTable, columns: named(pinColumns(), names...), conditions: []string{"deleted = false"}, most: 1}
	err := r.pins(ctx, q, pins, func(r *row) {
		of := r.ObjectAttributes
		all[schemas.PinID(r.Object)] = feature.PinAttributes{Facets: of.Facets, Attributes: of.Attributes, Embedding: of.Embedding}
	})
	return all, r.fresh, err
}

// reading is a series of queries.
type reading struct {
	client *Client
	begun  bool
	fresh  time.Time // of the least fresh answer; zero: unknown
}

// pins visits the rows of pins. If the answer would exceed Config.MaxResponseBytes, it reads half of the pins at a time.
func (r *reading) pins(ctx context.Context, of pinQuery, pins []schemas.PinID, visit func(*row)) error {
	q := of.of(pins)
	a, err := r.client.query(ctx, q.sql, len(q.columns))
	switch n := len(pins) / 2; {
	case errors.Is(err, ErrTooLarge) && n > 0:
		return errors.Join(r.pins(ctx, of, pins[:n], visit), r.pins(ctx, of, pins[n:], visit))
	case err != nil:
		return err
	}
	r.note(a)
	return a.each(q.columns, visit)
}

// note records the freshness of an answer.
func (r *reading) note(a answer) {
	if !r.begun || a.fresh.Before(r.fresh) {
		r.begun, r.fresh = true, a.fresh
	}
}

// counts reads the steps that an evaluation needs. While a row moves to another segment, Pinot may return it twice.
func (r *reading) counts(ctx context.Context, pins []schemas.PinID, e *feature.ItemEvaluation, into map[schemas.PinID][]schemas.ItemCounts) error {
	from, upTo, actors := e.Wanted()
	if from > upTo {
		return nil
	}
	names := []string{pinColumn, timeColumn, "countsMap"}
	if actors {
		names = append(names, "actors")
	}
	type step struct {
		pin   schemas.PinID
		start schemas.Micros
	}
	seen := map[step]bool{}
	q := pinQuery{table: CountsTable, columns: named(countColumns(), names...), most: int((upTo-from)*1000/int64(schemas.ItemStep)) + 1}
	q.conditions = []string{fmt.Sprint(timeColumn, " >= ", from), fmt.Sprint(timeColumn, " <= ", upTo)}
	return r.pins(ctx, q, pins, func(r *row) {
		at := step{schemas.PinID(r.Object), r.Timestamp}
		if !seen[at] {
			seen[at], r.Start = true, r.Timestamp
			into[at.pin] = append(into[at.pin], r.ItemCounts)
		}
	})
}

// means adds the means of recent actors that an evaluation needs, except those of deleted pins.
func (r *reading) means(ctx context.Context, pins []schemas.PinID, e *feature.ItemEvaluation, into map[schemas.PinID][]schemas.ItemCounts) error {
	if !e.Means() {
		return nil
	}
	deleted := map[schemas.ID]bool{}
	q := pinQuery{table: PinsTable, columns: named(pinColumns(), pinColumn), conditions: []string{"deleted = true"}, most: 1}
	if err := r.pins(ctx, q, pins, func(r *row) { deleted[r.Object] = true }); err != nil {
		return err
	}
	q = pinQuery{table: MeansTable, columns: meanColumns(), most: 1}
	return r.pins(ctx, q, pins, func(r *row) {
		if pin := schemas.PinID(r.Object); !deleted[r.Object] {
			into[pin] = append(into[pin], schemas.ItemCounts{Embedding: r.Embedding})
		}
	})
}
