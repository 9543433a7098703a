package pools

import (
	"math/bits"
	"slices"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

// candidate is a pin's single place in a pool, however many rows it has.
type candidate struct {
	pin     schemas.PinID
	score   float64 // of the place
	version int     // index of the row that determines the facets
	place   int     // index of the row that determines the place; may be the same; noPlace: the pin is pulled
	candidateBody
}

// noPlace is the place of a candidate that has no row.
const noPlace = -1

// candidateBody is the content of a pin's highest version.
type candidateBody struct {
	schemas.Facets
	created schemas.Micros
	deleted bool
	unread  string // encoded body of the row while Facets are not parsed
}

// open parses the facets. It is called only for candidates whose facets are used.
func (b *candidateBody) open(bodies *ranked.Bodies) error {
	if b.unread == "" {
		return nil
	}
	body, err := bodies.Parse(b.unread)
	if err != nil {
		return err
	}
	b.Facets, b.unread = body.Facets, ""
	return nil
}

// is returns the content of a row.
func (r *candidateRow) is() candidateBody {
	return candidateBody{created: r.created, deleted: r.deleted, unread: r.body}
}

// places returns the candidates among the rows of a source; both lists are best first. The highest version of a pin
// determines its content. Rows whose creation time differs from that of the highest version have an outdated place and are
// ignored. The best of the other rows is the place.
func places(list []candidateRow) []candidate { return new(scratch).placesOf(list, len(list)) }

// placesOf is like the function places, but returns only candidates with a place among the first n rows.
func (m *scratch) placesOf(list []candidateRow, n int) []candidate {
	m.pins.reset(len(list))
	for i := range list {
		highest := m.pins.at(list, i)
		if list[i].version > list[*highest].version {
			*highest = int32(i)
		}
	}
	m.found = slices.Grow(m.found[:0], n)
	for i := range n {
		highest := m.pins.of(i)
		if *highest == placed || list[i].created != list[*highest].created {
			continue
		}
		top := int(*highest)
		*highest = placed // the first row is the best
		m.found = append(m.found, candidate{
			pin: list[i].pin, score: list[i].score, version: top, place: i, candidateBody: list[top].is(),
		})
	}
	return m.found
}

// pinTable maps each pin of a list of rows to the index of one of its rows. It is a hash table with open addressing: a map
// costs three times as much, and a list is read for every chunk.
type pinTable struct {
	rows []int32 // by slot
	slot []int32 // by row
}

const (
	free   = -1 // an empty slot
	placed = -2 // a pin whose place was found
)

// reset clears the table and makes room for n rows.
func (t *pinTable) reset(n int) {
	size := 1 << bits.Len(uint(2*n)) // at most half full
	t.rows, t.slot = slices.Grow(t.rows[:0], size)[:size], slices.Grow(t.slot[:0], n)[:n]
	for i := range t.rows {
		t.rows[i] = free
	}
}

// at returns the entry of a row's pin. A new entry is the row itself.
func (t *pinTable) at(list []candidateRow, row int) *int32 {
	mask := len(t.rows) - 1
	for s := int(ranked.Hash(list[row].pin)*0x9e3779b97f4a7c15>>32) & mask; ; s = (s + 1) & mask {
		if t.rows[s] == free {
			t.rows[s] = int32(row)
		}
		if list[t.rows[s]].pin == list[row].pin {
			t.slot[row] = int32(s)
			return &t.rows[s]
		}
	}
}

// of returns the entry of the pin of a row. at must have been called with that row.
func (t *pinTable) of(row int) *int32 { return &t.rows[t.slot[row]] }

// fate is the state of a candidate according to a user's rows.
type fate int

const (
	waiting fate = iota // visible and unseen
	hidden              // by a block or a deletion, or because no edge justifies it
	refused             // created before the oldest remembered pin was shown
	expired             // older than the expiry
	erased              // of a deleted author
)

// judge determines the state of candidates. It calls remembers last, and only if the result matters.
type judge struct {
	standing  func(c *candidate) fate          // ignores seen pins: waiting, hidden, refused, expired or erased
	remembers func(c *candidate) (bool, error) // reports whether the pin was seen
	below     schemas.Version                  // candidates that a version below it deleted are dropped
	bodies    *ranked.Bodies
}

// best appends the n best waiting candidates of all to list, which must be empty. all is sorted, best first.
func (j judge) best(list, all []candidate, n int) ([]candidate, error) {
	return j.bestOf(list, func() *candidate {
		if len(all) == 0 {
			return nil
		}
		c := &all[0]
		all = all[1:]
		return c
	}, min(n, len(all)))
}

// bestOf is like best, for the candidates that next returns until it returns nil.
func (j judge) bestOf(list []candidate, next func() *candidate, n int) ([]candidate, error) {
	for len(list) < n {
		c := next()
		if c == nil {
			break
		}
		if err := c.open(j.bodies); err != nil {
			return nil, err
		}
		if j.standing(c) != waiting {
			continue
		}
		seen, err := j.remembers(c)
		if err != nil {
			return nil, err
		}
		if !seen {
			list = append(list, *c)
		}
	}
	return list, nil
}

// trimmed is the result of a trim of a source.
type trimmed struct {
	reasons []string // by row: why it is dropped; "": it stays
	waiting []int    // places of the waiting candidates that stay, best first
	hidden  int      // number of hidden candidates that stay
}

// dropped returns the indexes of the dropped rows.
func (t *trimmed) dropped() (list []int) {
	for i, reason := range t.reasons {
		if reason != "" {
			list = append(list, i)
		}
	}
	return list
}

// trim keeps the best candidates up to the cap, and as many hidden ones. Of each it keeps the rows that determine its content
// and its place.
func (j judge) trim(list []candidateRow, all []candidate, most int) (*trimmed, error) {
	t := &trimmed{reasons: make([]string, len(list)), waiting: make([]int, 0, min(len(all), most))}
	for i := range t.reasons {
		t.reasons[i] = dropDuplicate
	}
	for i := range all {
		c := &all[i]
		reason, err := j.reason(c, list[c.version].version, t, most)
		if err != nil {
			return nil, err
		}
		t.reasons[c.place], t.reasons[c.version] = reason, reason
	}
	return t, nil
}

// reason returns why a candidate is dropped, or "" if it stays; then it counts the candidate in t.
func (j judge) reason(c *candidate, version schemas.Version, t *trimmed, most int) (string, error) {
	if err := c.open(j.bodies); err != nil {
		return "", err
	}
	f := j.standing(c)
	switch {
	case f == refused:
		return dropRefused, nil
	case f == expired:
		return dropExpired, nil
	case f == erased:
		return dropErased, nil
	case c.deleted && version < j.below:
		return dropDeleted, nil
	case f == hidden && t.hidden == most:
		return dropHiddenCap, nil
	case f == waiting && len(t.waiting) == most:
		return dropCap, nil
	}
	seen, err := j.remembers(c)
	if err != nil {
		return "", err
	}
	if seen {
		return dropSeen, nil
	}
	if f == hidden {
		t.hidden++
	} else {
		t.waiting = append(t.waiting, c.place)
	}
	return "", nil
}
