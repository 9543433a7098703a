package pinot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// Store is a feature.Store whose actions are in Pinot. The data of pins, which is computed in the stream and read by
// key, comes from another store.
type Store struct {
	cfg    feature.Config
	client *Client
	pins   feature.Store
}

// NewStore returns a store. cfg limits the result of a read.
func NewStore(cfg feature.Config, client *Client, pins feature.Store) *Store {
	return &Store{cfg: cfg, client: client, pins: pins}
}

// Items implements feature.Store.
func (s *Store) Items(ctx context.Context, pins []schemas.PinID, now schemas.Micros, defs []feature.Definition) ([][]feature.Result, error) {
	return s.pins.Items(ctx, pins, now, defs)
}

// Pins implements feature.Store.
func (s *Store) Pins(ctx context.Context, pins []schemas.PinID, embeddings bool) (map[schemas.PinID]feature.PinAttributes, error) {
	return s.pins.Pins(ctx, pins, embeddings)
}

// Actions implements feature.Store with one query, and a second one if the first result has too many groups or bytes.
// The queries read only the user's partition, so the freshness is that of the partition.
func (s *Store) Actions(
	ctx context.Context, user schemas.UserID, span feature.Span, defs []feature.Definition,
) (results []feature.Result, fresh time.Time, err error) {
	e := feature.NewEvaluation(span, defs, s.cfg.MaxGroups)
	after, upTo := e.Wanted()
	if after >= upTo {
		return e.Results(), time.Time{}, nil
	}
	if len(defs) == 1 {
		// One row above MaxGroups may count the actions outside of any group; with the other, rows may be missing.
		if q, ok := count(user, defs[0], after, upTo, s.cfg.MaxGroups+2); ok {
			results, fresh, err := s.counted(ctx, q, span, defs[0])
			if !errors.Is(err, errGroups) && !errors.Is(err, ErrTooLarge) {
				return results, fresh, err
			}
		}
	}
	p, err := s.newest(ctx, user, defs, after, upTo)
	if err != nil {
		return nil, time.Time{}, err
	}
	for i := range p.actions {
		if p.actions[i].Actor != user { // see ambiguous
			continue
		}
		if err := errors.Join(ctx.Err(), e.Add(&p.actions[i])); err != nil { // many groups take time
			return nil, time.Time{}, err
		}
	}
	if p.more {
		e.StopAt(p.from)
	}
	return e.Results(), p.fresh, nil
}

// page holds the newest rows of a user.
type page struct {
	actions []schemas.EnrichedAction // newest first
	fresh   time.Time
	more    bool           // there are older ones
	from    schemas.Micros // if so, these are at this time or earlier
}

// newest reads the newest rows, one above the limit to see whether there are more. If the answer would exceed
// Config.MaxResponseBytes, it requests as many rows as fitted, so that a user with wide rows does not count as a
// failure of the store.
func (s *Store) newest(ctx context.Context, user schemas.UserID, defs []feature.Definition, after, upTo int64) (page, error) {
	for limit := s.cfg.MaxActions + 1; limit > 0; {
		q := rows(user, defs, after, upTo, limit)
		a, err := s.client.query(ctx, q.sql, len(q.columns))
		switch {
		case errors.Is(err, ErrTooLarge) && a.complete >= 0:
			limit = min(limit-1, a.complete-a.complete/8) // the data after the rows needs room, too
			continue
		case err != nil:
			return page{}, err
		}
		actions, err := decode(q, a.rows)
		if err != nil {
			return page{}, fmt.Errorf("read answer of pinot: %w", err)
		}
		p := page{actions: actions, fresh: a.fresh}
		if len(actions) >= limit {
			p.actions, p.more, p.from = actions[:limit-1], true, actions[limit-1].Timestamp
		}
		return p, nil
	}
	return page{more: true, from: schemas.Micros(upTo) * 1000}, nil // not even one row fits
}

// decode decodes rows and sorts them as features require. Pinot compares ids by UTF-16, not by bytes.
func decode(q statement, rows [][]any) ([]schemas.EnrichedAction, error) {
	actions := make([]schemas.EnrichedAction, len(rows))
	for i, r := range rows {
		for j, c := range q.columns {
			if err := c.read(&actions[i], r[j]); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(actions, func(a, b schemas.EnrichedAction) int {
		return cmp.Or(cmp.Compare(b.Timestamp, a.Timestamp), cmp.Compare(b.ID, a.ID))
	})
	return actions, nil
}

// errGroups is returned when there are more groups than the limit. Only rows show which of them are the newest.
var errGroups = errors.New("more groups than the limit")

// counted runs the query of a count.
func (s *Store) counted(ctx context.Context, q statement, span feature.Span, d feature.Definition) ([]feature.Result, time.Time, error) {
	a, err := s.client.query(ctx, q.sql, len(q.columns)+1)
	if err != nil {
		return nil, time.Time{}, err
	}
	total, groups := int64(0), []feature.Counted(nil)
	for _, r := range a.rows {
		n, ok := r[len(r)-1].(json.Number)
		x, err := n.Int64()
		if !ok || err != nil {
			return nil, time.Time{}, fmt.Errorf("read answer of pinot: count %v", r[len(r)-1])
		}
		values := make([]string, len(r)-1)
		for i := range values {
			if values[i], ok = r[i].(string); !ok {
				return nil, time.Time{}, fmt.Errorf("read answer of pinot: group %v", r[i])
			}
		}
		total = x
		if !slices.Contains(values, "") { // "": absent
			groups = append(groups, feature.Counted{Value: feature.GroupName(values...), Count: x})
		}
	}
	if a.capped || len(a.rows) > s.cfg.MaxGroups+1 || len(groups) > s.cfg.MaxGroups {
		return nil, time.Time{}, errGroups
	}
	return []feature.Result{d.Counts(span, total, groups)}, a.fresh, nil
}
