package layout

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// servedKept is the number of Served ids that the state remembers. A producer repeats a record only within its delivery
// timeout, in which a user makes few visits. The pins of a later repeat are already seen.
const servedKept = 32

// State is what a user's visits leave behind besides other rows: one row, in JSON.
type State struct {
	Head           int64          `json:"head"`              // highest assigned position
	Unseen         int64          `json:"unseen,omitempty"`  // the seen pins at or below this position were removed
	Refused        schemas.Micros `json:"refused,omitempty"` // candidates created before this time are refused, if Unseen is not 0
	Thawed         int64          `json:"thawed,omitempty"`  // materialized rows whose last position is at or below it were deleted
	ServedBy       []string       `json:"served,omitempty"`  // applied ids, newest first
	schemas.Memory                // of the newest Served
}

// ReadState reads the state of a user. It is zero if there is none.
func ReadState(t Table) (State, error) {
	value, err := t.Get([]byte{KindState})
	if err != nil || value == nil {
		return State{}, err
	}
	var s State
	if err := json.Unmarshal(value, &s); err != nil {
		return State{}, fmt.Errorf("parse state: %w", err)
	}
	return s, nil
}

// Applied reports whether a Served has been applied.
func (s *State) Applied(id string) bool { return slices.Contains(s.ServedBy, id) }

// ForgottenBefore returns the time before which any pin may be one whose seen row was removed.
func (s *State) ForgottenBefore() schemas.Micros {
	if s.Unseen == 0 {
		return math.MinInt64
	}
	return s.Refused
}

// Refuse raises ForgottenBefore once a seen row is removed.
func (s *State) Refuse(before schemas.Micros) { s.Refused = max(s.Refused, before) }

// Show applies a new Served. It returns the entries of the items that are not in seen, or nil if there are none, and the
// number of the other items. It adds the shown pins to seen. A materialized feed is read from the highest position down, so
// the first item gets the highest position: a reload shows the visit unchanged.
func (s *State) Show(rec *schemas.Served, seen map[schemas.PinID]bool) (added *schemas.FeedEntries, repeats int) {
	var items []schemas.ServedItem
	for i := range rec.Items {
		item := &rec.Items[i]
		if seen[item.Pin] {
			repeats++
			continue
		}
		seen[item.Pin] = true
		items = append(items, *item)
	}
	if len(items) > 0 {
		slices.Reverse(items)
		added = &schemas.FeedEntries{User: rec.User, Time: rec.Time, First: s.Head + 1, Items: items}
		s.Head = added.Last()
	}
	s.Memory = rec.Memory
	s.ServedBy = append([]string{rec.ID}, s.ServedBy[:min(len(s.ServedBy), servedKept-1)]...)
	return added, repeats
}
