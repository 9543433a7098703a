package actors

import (
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// relate reports which pins belong together because the user acted on them: pins on the same board to the board, and pins of
// actions close in time to the pin. The request also asks for the pin's neighbors.
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
	recent, err := t.recent(a.Timestamp)
	if err != nil {
		return err
	}
	for _, r := range recent {
		if r.request == nil {
			continue
		}
		if near, ok := together(&request, r.request, t.cfg.RelatedWithin); ok {
			request.Near = append(request.Near, near)
		}
	}
	if err := t.keepRecent(&request, recent); err != nil {
		return err
	}
	return rows.Send(t.tx, t.streams.RelatedRequests, string(pin.ID), &request)
}

// neighbourOf returns the pin of an action. Its version is 0 if the pin is unknown or not created yet.
func neighbourOf(a *schemas.EnrichedAction) schemas.Neighbour {
	o := &a.ObjectAttributes
	return schemas.Neighbour{ID: a.Object, Version: o.Version, Facets: o.Facets, Created: o.Created, Quality: o.Quality}
}

// recent returns the user's last positive actions, newest first. The requests are as they were sent, without Near. Requests
// that are too far from at to make neighbors are not decoded.
func (t table) recent(at schemas.Micros) ([]recentAction, error) {
	list, _, err := rows.Value[recentActions](t.own, []byte{recentRow})
	if err != nil {
		return nil, err
	}
	for i := range list {
		if r := &list[i]; err == nil && apart(r.time, at) <= t.cfg.RelatedWithin {
			r.request, err = t.streams.RelatedRequests.Decode(r.encoded)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read recent actions of %s: %w", t.user(), rows.Unreadable([]byte{recentRow}, err))
	}
	return list, nil
}

// keepRecent stores an action among the newest Config.RelatedRecent. It replaces an action on the same pin at the same time.
func (t table) keepRecent(r *schemas.RelatedRequest, recent []recentAction) error {
	most := t.cfg.RelatedRecent
	if most == 0 || len(recent) >= most && r.Time < recent[most-1].time {
		return nil // older than all stored actions
	}
	bare := *r
	bare.Near = nil
	value, err := t.streams.RelatedRequests.Encode(&bare)
	if err != nil {
		return fmt.Errorf("encode recent action of %s: %w", t.user(), err)
	}
	recent = slices.DeleteFunc(recent, func(old recentAction) bool {
		return old.time == r.Time && old.request != nil && old.request.Pin.ID == r.Pin.ID
	})
	at := slices.IndexFunc(recent, func(old recentAction) bool { return old.time <= r.Time })
	if at < 0 {
		at = len(recent)
	}
	list := recentActions(slices.Insert(recent, at, recentAction{time: r.Time, encoded: value}))
	list = list[:min(len(list), most)]
	return rows.PutValue(t.own, []byte{recentRow}, &list)
}

// dropRecent deletes the user's last actions.
func (t table) dropRecent() error { return t.own.Delete([]byte{recentRow}) }
