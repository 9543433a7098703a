package layout

import (
	"math/bits"
	"slices"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// Candidate is a pin's single place in a pool, regardless of its number of rows.
type Candidate struct {
	Pin       schemas.PinID
	PoolScore schemas.PoolScore // of the place
	Version   int               // index of the row that determines the facets
	Place     int               // index of the row that determines the place; may be the same; NoPlace: the pin is pulled
	Content
}

// NoPlace is the place of a candidate that has no row.
const NoPlace = -1

// Content is the content of a pin's highest version.
type Content struct {
	visibility.Pin
	encoded string // encoded body of the row while Facets are not parsed
}

// NewContent returns a content with parsed facets.
func NewContent(c schemas.PinContent) Content {
	return Content{Pin: visibility.Pin{PinContent: c}}
}

// open parses the facets. It is called only for candidates with facets in use.
func (b *Content) open(bodies *ranked.Bodies) error {
	if b.encoded == "" {
		return nil
	}
	body, err := bodies.Parse(b.encoded)
	if err != nil {
		return err
	}
	b.Facets, b.encoded = body.Facets, ""
	return nil
}

// Content returns the content of a row.
func (r *CandidateRow) Content() Content {
	return Content{Pin: visibility.Pin{PinContent: schemas.PinContent{Created: r.Created, Deleted: r.deleted}}, encoded: r.body}
}

// candidatesOf returns the candidates with a place among the first n rows of a source; both lists are best first. The highest
// version of a pin determines its content. Rows whose creation time differs from that of the highest version have an outdated
// place and are ignored. The best of the other rows is the place.
func (m *Buffers) candidatesOf(list []CandidateRow, n int) []Candidate {
	m.pins.reset(len(list))
	for i := range list {
		highest := m.pins.at(list, i)
		if list[i].Version > list[*highest].Version {
			*highest = int32(i)
		}
	}
	m.found = slices.Grow(m.found[:0], n)
	for i := range n {
		highest := m.pins.of(i)
		if *highest == placed || list[i].Created != list[*highest].Created {
			continue
		}
		top := int(*highest)
		*highest = placed // the first row is the best
		m.found = append(m.found, Candidate{
			Pin: list[i].Pin, PoolScore: list[i].PoolScore, Version: top, Place: i, Content: list[top].Content(),
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
func (t *pinTable) at(list []CandidateRow, row int) *int32 {
	mask := len(t.rows) - 1
	for s := int(ranked.Hash(list[row].Pin)*0x9e3779b97f4a7c15>>32) & mask; ; s = (s + 1) & mask {
		if t.rows[s] == free {
			t.rows[s] = int32(row)
		}
		if list[t.rows[s]].Pin == list[row].Pin {
			t.slot[row] = int32(s)
			return &t.rows[s]
		}
	}
}

// of returns the entry of the pin of a row. at must have been called with that row.
func (t *pinTable) of(row int) *int32 { return &t.rows[t.slot[row]] }
