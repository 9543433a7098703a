package actors

import (
	"cmp"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// recentActions are the last positive actions of a user, newest first. They are one row, because they are always read
// together, and a get costs much less than a scan.
type recentActions []schemas.Near

// Pack implements packed.Row.
func (r *recentActions) Pack(p *packed.Packer) {
	p.Version(4)
	packed.Items(p, (*[]schemas.Near)(r), func(p *packed.Packer, a *schemas.Near) {
		packed.Int(p, &a.Time)
		packed.Float(p, &a.Weight)
		packed.String(p, &a.Neighbor.ID)
		ranked.PackNeighbor(p, &a.Neighbor)
	})
}

// relate sends the relations between pins that the user acted on: pins saved to the same board to the board, and pins of
// actions close in time to the pin. The latter is also the request for the pin's neighbors.
func (t table) relate(a *schemas.EnrichedAction, weight float64) {
	pin := neighborOf(a)
	if weight < t.cfg.RelatedMinWeight || pin.Version == 0 {
		return
	}
	if board := a.VerbAttributes.Board; board != "" {
		save := schemas.BoardSave{Board: board, Time: a.Timestamp, Weight: weight, Pin: pin}
		rows.Send(t.tx, t.streams.BoardSaves, string(board), &save)
	}
	request := schemas.RelatedRequest{User: t.user(), Verb: a.Verb, Weight: weight, Time: a.Timestamp, Pin: pin}
	recent, _ := rows.Load[recentActions](t.own, []byte{recentRow})
	action := schemas.Near{Neighbor: pin, Weight: weight, Time: a.Timestamp}
	for _, other := range recent {
		if near, ok := together(action, other, t.cfg.RelatedWindow); ok {
			request.Near = append(request.Near, near)
		}
	}
	t.keepRecent(recent, action)
	rows.Send(t.tx, t.streams.RelatedRequests, string(pin.ID), &request)
}

// neighborOf returns the pin of an action. Its version is 0 if the pin is unknown or not created.
func neighborOf(a *schemas.EnrichedAction) schemas.Neighbor {
	o := &a.ObjectAttributes
	return schemas.Neighbor{ID: a.Object, Version: o.Version, Facets: o.Facets, Created: o.Created, Quality: o.Quality}
}

// keepRecent stores an action among the newest Config.RelatedMaxActions. It replaces an action on the same pin at the same
// time.
func (t table) keepRecent(recent recentActions, action schemas.Near) {
	limit := t.cfg.RelatedMaxActions
	if limit == 0 || len(recent) >= limit && action.Time < recent[limit-1].Time {
		return // older than all stored actions
	}
	recent = slices.DeleteFunc(recent, func(old schemas.Near) bool {
		return old.Time == action.Time && old.Neighbor.ID == action.Neighbor.ID
	})
	at, _ := slices.BinarySearchFunc(recent, action.Time, func(old schemas.Near, at schemas.Micros) int { return cmp.Compare(at, old.Time) })
	recent = slices.Insert(recent, at, action)
	recent = recent[:min(len(recent), limit)]
	rows.PutValue(t.own, []byte{recentRow}, &recent)
}

// together reports whether two actions of a user on different pins are close enough in event time to make the pins
// neighbors. It returns the pin of the other action, with the weight and time of the later action by event time.
func together(action, other schemas.Near, within time.Duration) (schemas.Near, bool) {
	first, last := other, action
	if last.Time < first.Time || last.Time == first.Time && last.Weight < first.Weight {
		first, last = last, first
	}
	near := schemas.Near{Neighbor: other.Neighbor, Weight: last.Weight, Time: last.Time}
	return near, other.Neighbor.ID != action.Neighbor.ID && last.Time.Time().Sub(first.Time.Time()) <= within
}
