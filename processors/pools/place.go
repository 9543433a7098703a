package pools

import (
	"math/bits"
	"slices"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

// candidate is a pin's place in a pool: one, whatever number of rows it has.
type candidate struct {
	pin     schemas.PinID
	score   float64 // of the place
	version int     // index of the row that gives the facets
	place   int     // index of the row that gives the place; may be the same; noPlace: it is pulled
	candidateBody
}

// noPlace is the place of a candidate that stands in no row of the user.
const noPlace = -1

// candidateBody is what the highest version says.
type candidateBody struct {
	schemas.Facets
	created schemas.Micros
	deleted bool
	unread  string // the body of the row, as long as Facets are not read
}

// open reads the facets, of which only those are needed that somebody looks at.
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

// is returns what a row says.
func (r *candidateRow) is() candidateBody {
	return candidateBody{created: r.created, deleted: r.deleted, unread: r.body}
}

// places finds the candidates among the rows of a source, both best first. Of a pin's rows the highest version says what
// the pin is. Rows whose creation differs from that version's stand where an earlier belief put them, and are ignored;
// of the others the best one is the place.
func places(list []candidateRow) []candidate { return new(scratch).placesOf(list, len(list)) }

// placesOf is the function places, of the places of the first n rows alone.
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
		*highest = placed // the first is the best
		m.found = append(m.found, candidate{
			pin: list[i].pin, score: list[i].score, version: top, place: i, candidateBody: list[top].is(),
		})
	}
	return m.found
}

// pinTable has for each pin of a list of rows the index of one of them. It is a hash table with open addressing: a map
// costs three times as much where a list is read for every chunk.
type pinTable struct {
	rows []int32 // by slot
	slot []int32 // by row
}

const (
	free   = -1 // a slot of no pin
	placed = -2 // a pin that is done with
)

// reset prepares for so many rows.
func (t *pinTable) reset(n int) {
	size := 1 << bits.Len(uint(2*n)) // at most half full
	t.rows, t.slot = slices.Grow(t.rows[:0], size)[:size], slices.Grow(t.slot[:0], n)[:n]
	for i := range t.rows {
		t.rows[i] = free
	}
}

// at returns the entry of a row's pin, at first the row itself.
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

// of returns the entry of the pin of a row that at was called with.
func (t *pinTable) of(row int) *int32 { return &t.rows[t.slot[row]] }

// fate is what a user's rows say of a candidate.
type fate int

const (
	waiting fate = iota // visible and unseen
	hidden              // by a block, a deletion, for want of an edge
	refused             // created before what is remembered as seen
	expired             // older than the expiry
	erased              // of an author who is gone for good
)

// judge says what becomes of candidates. remembers is asked last, and only of those whose answer matters.
type judge struct {
	standing  func(c *candidate) fate          // without seen: waiting, hidden, refused or expired
	remembers func(c *candidate) (bool, error) // seen
	below     schemas.Version                  // deleted versions below it are dropped
	bodies    *ranked.Bodies
}

// best appends the n best candidates that wait, of all of them, best first, to a list without any.
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

// bestOf is best of the candidates that next yields, until nil.
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

// trimmed is what a trim makes of the rows of a source.
type trimmed struct {
	reasons []string // why a row is dropped, "" if it stays
	waiting []int    // the places that stay of candidates that wait, best first
	hidden  int      // how many stay of those that are hidden
}

// dropped returns which rows are dropped.
func (t *trimmed) dropped() (list []int) {
	for i, reason := range t.reasons {
		if reason != "" {
			list = append(list, i)
		}
	}
	return list
}

// trim keeps the best candidates up to the cap, as many hidden ones, and of each the rows that say what it is and where
// it stands.
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

// reason is why a candidate is dropped, "" if it stays, which t then counts.
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
