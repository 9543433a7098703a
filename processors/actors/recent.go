package actors

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// relate tells which pins go together because the user acted on them: those of the same board to the board, those of
// about the same time to the pin, whose neighbours the user then gets.
func (t table) relate(a *schemas.EnrichedAction) error {
	weight := t.cfg.Verbs[a.Verb]
	pin := neighbourOf(a)
	if weight < t.cfg.RelatedFrom || pin.Version == 0 {
		return nil
	}
	if board := a.VerbAttributes.Board; board != "" {
		save := schemas.BoardSave{Board: board, Time: a.Timestamp, Weight: weight, Pin: pin}
		if err := rows.Send(t.tx, t.streams.BoardSaves, string(board), &save); err != nil {
			return err
		}
	}
	request := schemas.RelatedRequest{User: t.user(), Verb: a.Verb, Weight: weight, Time: a.Timestamp, Pin: pin}
	recent, err := t.recent()
	if err != nil {
		return err
	}
	for _, r := range recent {
		if near, ok := together(&request, r, t.cfg.RelatedWithin); ok {
			request.Near = append(request.Near, near)
		}
	}
	if err := t.keepRecent(&request, recent); err != nil {
		return err
	}
	return rows.Send(t.tx, t.streams.RelatedRequests, string(pin.ID), &request)
}

// neighbourOf is the pin of an action; without a version it is not known, or not created yet.
func neighbourOf(a *schemas.EnrichedAction) schemas.Neighbour {
	o := &a.ObjectAttributes
	return schemas.Neighbour{ID: a.Object, Version: o.Version, Facets: o.Facets, Created: o.Created, Quality: o.Quality}
}

// recent reads what the user did last to pins, newest first: requests, as they were sent but for the pins near.
func (t table) recent() ([]*schemas.RelatedRequest, error) {
	var list []*schemas.RelatedRequest
	var bad error
	err := t.own.Scan(rows.Scan{Prefix: []byte{recentRow}}, func(_, value []byte) bool {
		var r *schemas.RelatedRequest
		r, bad = t.streams.RelatedRequests.Decode(value)
		list = append(list, r)
		return bad == nil
	})
	if err == nil && bad != nil {
		// Not %w: a row that cannot be read is not the input's fault, and must not end in its dead letter.
		err = fmt.Errorf("read recent actions of %s: %v", t.user(), bad)
	}
	return list, err
}

// keepRecent remembers an action among the newest Config.RelatedRecent.
func (t table) keepRecent(r *schemas.RelatedRequest, recent []*schemas.RelatedRequest) error {
	most := t.cfg.RelatedRecent
	if most == 0 || len(recent) >= most && r.Time < recent[most-1].Time {
		return nil // it is older than all that are remembered
	}
	for _, old := range recent[min(most-1, len(recent)):] {
		if err := t.own.Delete(recentName(old)); err != nil {
			return err
		}
	}
	bare := *r
	bare.Near = nil
	value, err := t.streams.RelatedRequests.Encode(&bare)
	if err != nil {
		return fmt.Errorf("encode recent action of %s: %w", t.user(), err)
	}
	return t.own.Put(recentName(r), value)
}

// dropRecent forgets what the user did.
func (t table) dropRecent() error {
	recent, err := t.recent()
	if err != nil {
		return err
	}
	for _, r := range recent {
		if err := t.own.Delete(recentName(r)); err != nil {
			return err
		}
	}
	return nil
}
