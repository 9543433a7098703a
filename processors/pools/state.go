package pools

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// servedKept is how many ids of Served records a user's state remembers. A producer repeats a record within its delivery
// time-out, and a user has few visits in that time. The pins of a later repeat have been seen.
const servedKept = 32

// state is what is remembered of a user's visits beside the rows: one row, in JSON.
type state struct {
	Head           int64          `json:"head"`              // the highest position given
	Unseen         int64          `json:"unseen,omitempty"`  // positions at or below it are no longer remembered as seen
	Refused        schemas.Micros `json:"refused,omitempty"` // candidates created before are refused, once Unseen is not 0
	Thawed         int64          `json:"thawed,omitempty"`  // frozen rows whose last position is at or below it are gone
	ServedBy       []string       `json:"served,omitempty"`  // ids applied, newest first
	schemas.Memory                // of the newest Served
}

func readState(t table) (state, error) {
	value, err := t.Get([]byte{rowState})
	if err != nil || value == nil {
		return state{}, err
	}
	var s state
	if err := json.Unmarshal(value, &s); err != nil {
		return state{}, fmt.Errorf("parse state: %w", err)
	}
	return s, nil
}

// applied says whether the effect of a Served is in the rows.
func (s *state) applied(id string) bool { return slices.Contains(s.ServedBy, id) }

// refuses says whether a pin may be one that was seen and forgotten.
func (s *state) refuses(created schemas.Micros) bool { return s.Unseen > 0 && created < s.Refused }

// refuse has pins refused that were created before a time, and before any time named earlier.
func (s *state) refuse(before schemas.Micros) { s.Refused = max(s.Refused, before) }

// show applies a Served that was not applied before: it returns the frozen entries of the items that are not among seen, nil
// if there are none, and counts the others. seen learns what is shown. A frozen feed is read from the highest position down, so the item
// that was shown first gets the highest: a reload shows the visit as it was.
func (s *state) show(rec *schemas.Served, seen map[schemas.PinID]bool) (added *schemas.FeedEntries, repeats int) {
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
		added = schemas.FeedEntriesOf(rec.User, rec.Time, s.Head+1, items)
		s.Head = added.Last()
	}
	s.Memory = rec.Memory
	s.ServedBy = append([]string{rec.ID}, s.ServedBy[:min(len(s.ServedBy), servedKept-1)]...)
	return added, repeats
}

// crossed says whether a count that went from one number to another passed a multiple of n.
func crossed(from, to, n int64) bool { return from/n != to/n }
