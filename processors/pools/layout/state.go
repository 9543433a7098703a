package layout

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// servedKept is the number of Served ids in the state. A producer repeats a record only within its delivery
// timeout, in which a user makes few visits. The pins of a later repeat are already seen.
const servedKept = 32

// State is the result of a user's visits, except for the other rows: one row.
type State struct {
	Head           int64          // highest assigned position
	SeenTrimmed    int64          // seen pins at or below this position were removed
	Refused        schemas.Micros // candidates created before this time are refused, if SeenTrimmed is not 0
	Trimmed        int64          // materialized rows up to this last position were deleted
	ServedBy       []string       // applied ids, newest first
	schemas.Memory                // of the newest Served
}

// Pack implements packed.Row.
func (s *State) Pack(p *packed.Packer) {
	p.Version(1)
	for _, n := range []*int64{&s.Head, &s.SeenTrimmed, &s.Trimmed, &s.Draws, &s.Weak} {
		packed.Int(p, n)
	}
	for _, at := range []*schemas.Micros{&s.Refused, &s.Began, &s.Visited} {
		packed.Int(p, at)
	}
	packed.Items(p, &s.ServedBy, packed.String[string])
	packNumbers(p, &s.Mix)
	packNumbers(p, &s.Best)
	packed.Items(p, &s.Deferred, func(p *packed.Packer, d *schemas.Deferred) {
		packed.String(p, &d.Pin)
		packed.Int(p, &d.Since)
	})
}

// packNumbers packs the numbers of a map, by name.
func packNumbers[T ~float64](p *packed.Packer, m *map[string]T) {
	type entry struct {
		name string
		n    T
	}
	list := make([]entry, 0, len(*m))
	for _, name := range slices.Sorted(maps.Keys(*m)) {
		list = append(list, entry{name, (*m)[name]})
	}
	packed.Items(p, &list, func(p *packed.Packer, e *entry) {
		packed.String(p, &e.name)
		packed.Float(p, &e.n)
	})
	if *m != nil || len(list) == 0 {
		return
	}
	*m = make(map[string]T, len(list))
	for _, e := range list {
		(*m)[e.name] = e.n
	}
}

// ReadState reads the state of a user. It is zero if there is none.
func ReadState(t rows.Getter) (State, error) {
	s, _, err := rows.Value[State](t, []byte{KindState})
	return s, err
}

// Applied reports whether a Served has been applied.
func (s *State) Applied(id string) bool { return slices.Contains(s.ServedBy, id) }

// AppliedAttempt reports whether a Served whose id starts with prefix has been applied. No Served starts with "".
func (s *State) AppliedAttempt(prefix string) bool {
	return prefix != "" && slices.ContainsFunc(s.ServedBy, func(id string) bool { return strings.HasPrefix(id, prefix) })
}

// SeenTrimmedBefore returns a bound: the seen row of any pin created before it may have been removed.
func (s *State) SeenTrimmedBefore() schemas.Micros {
	if s.SeenTrimmed == 0 {
		return math.MinInt64
	}
	return s.Refused
}

// Refuse raises SeenTrimmedBefore once a seen row is removed.
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
