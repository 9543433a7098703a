package pinot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// Store is a feature.Store of which the actions are in Pinot. What is known of pins, computed in the stream and read by
// key, comes from another store.
type Store struct {
	cfg    feature.Config
	client *Client
	pins   feature.Store
}

// NewStore makes a store; cfg bounds what is looked at.
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

// Actions implements feature.Store with one query. It goes to the user's partition alone, and so what it says of how fresh
// it is holds for that partition.
func (s *Store) Actions(
	ctx context.Context, user schemas.UserID, span feature.Span, defs []feature.Definition,
) (results []feature.Result, fresh time.Time, err error) {
	e := feature.NewEvaluation(s.cfg, user, span, defs)
	after, upTo := e.Wanted()
	if after >= upTo {
		return e.Results(), time.Time{}, nil
	}
	if len(defs) == 1 {
		if q, ok := count(user, defs[0], after, upTo, s.cfg.MaxGroups+1); ok {
			return s.counted(ctx, q, span, defs[0])
		}
	}
	q := rows(user, defs, after, upTo, s.cfg.MaxActions+1)
	a, err := s.client.query(ctx, q.sql, len(q.columns))
	if err != nil {
		return nil, time.Time{}, err
	}
	actions, err := decode(q, a.rows)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read answer of pinot: %w", err)
	}
	for i := range actions {
		if actions[i].Actor != user { // see ambiguous
			continue
		}
		if more, err := e.Add(&actions[i]); err != nil || !more {
			return e.Results(), a.fresh, err
		}
	}
	return e.Results(), a.fresh, nil
}

// decode reads rows and puts them into the order of features: Pinot compares ids by UTF-16, which is not that of bytes.
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

// counted asks for one count.
func (s *Store) counted(ctx context.Context, q statement, span feature.Span, d feature.Definition) ([]feature.Result, time.Time, error) {
	a, err := s.client.query(ctx, q.sql, len(q.columns)+1)
	if err != nil {
		return nil, time.Time{}, err
	}
	total, groups := 0.0, map[string]float64{}
	for _, r := range a.rows {
		n, ok := r[len(r)-1].(json.Number)
		x, err := n.Float64()
		if !ok || err != nil {
			return nil, time.Time{}, fmt.Errorf("read answer of pinot: count %v", r[len(r)-1])
		}
		if len(r) == 1 {
			total = x
			continue
		}
		group, ok := r[0].(string)
		if !ok {
			return nil, time.Time{}, fmt.Errorf("read answer of pinot: group %v", r[0])
		}
		if group != "" && len(groups) < s.cfg.MaxGroups { // "": absent
			groups[group] = x
		}
	}
	capped := a.capped || len(a.rows) > s.cfg.MaxGroups
	return []feature.Result{d.Counts(span, total, groups, capped)}, a.fresh, nil
}
