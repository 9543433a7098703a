package layout

import (
	"slices"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// A pool is read best first, and only as far as its reader needs: a chunk uses the best 200 of perhaps a thousand rows. The
// highest version of a pin determines its facets, and its row can be anywhere. Therefore later versions are a separate kind
// of row, and all of them are read, because they are few. The first version of a pin is its lowest, because versions
// increase; see schemas.Version. Therefore unread first versions do not matter. Offers of external systems have no such
// order: an external source that has both kinds of rows is read completely.

// Buffers is reusable memory for reading rows. Results of its methods are valid until it is used for the next source.
type Buffers struct {
	text    []byte
	ends    []int     // ends of names and values in turn, or of ids
	weights []float32 // weights of edges

	later []CandidateRow // rows of KindLaterVersion
	first []CandidateRow // rows of KindFirstVersion that were read so far
	rows  []CandidateRow // both kinds; sorted up to the last row of first
	pins  pinTable
	found []Candidate

	Chosen []Candidate // for use by the caller of Iterate; see View.Best

	// bodies never overwrites its results: it continues after the used part.
	bodies ranked.Bodies
}

// CandidateRows reads all rows of a source, best first. The strings of one kind share one allocation.
func CandidateRows(t Table, source schemas.Source) ([]CandidateRow, error) {
	list, _, err := new(Buffers).Candidates(t, source)
	return list, err
}

// Candidates reads all rows of a source and the candidates among them, both best first.
func (m *Buffers) Candidates(t Table, source schemas.Source) ([]CandidateRow, []Candidate, error) {
	it, err := m.Iterate(t, source, 0)
	if err == nil {
		err = it.readMore()
	}
	return m.rows, m.found, err
}

// Iterator iterates over the candidates of a source, best first, including hidden and seen ones.
type Iterator struct {
	Source schemas.Source
	Err    error // of the last read

	table    Table
	buffers  *Buffers
	step     int  // number of rows to read next; 0: all
	complete bool // all rows have been read
	next     int  // index in buffers.found
}

// Iterate returns an iterator over a source. n is the number of candidates that the reader expects to use; 0: all.
func (m *Buffers) Iterate(t Table, source schemas.Source, n int) (*Iterator, error) {
	l := &Iterator{table: t, buffers: m, Source: source, step: n + n/4} // some are seen or hidden
	m.rows, m.first, m.found = m.rows[:0], m.first[:0], m.found[:0]
	var err error
	m.later, err = m.read(t, m.later[:0], rows.Scan{Prefix: SourcePrefix(KindLaterVersion, source)})
	if len(m.later) > 0 && source.CheckOffered() == nil {
		l.step = 0
	}
	return l, err
}

// Peek returns the next candidate without removing it, or nil at the end. It is valid until the next call.
func (l *Iterator) Peek() *Candidate {
	for l.next == len(l.buffers.found) && !l.complete && l.Err == nil {
		l.Err = l.readMore()
	}
	if l.Err != nil || l.next == len(l.buffers.found) {
		return nil
	}
	return &l.buffers.found[l.next]
}

// Take removes the next candidate and returns it, or nil at the end.
func (l *Iterator) Take() *Candidate {
	c := l.Peek()
	if c != nil {
		l.next++
	}
	return c
}

// LaterVersions returns the rows of all later versions. They are complete from the start.
func (l *Iterator) LaterVersions() []CandidateRow { return l.buffers.later }

// Version returns the version that determines the content of a candidate of the iterator.
func (l *Iterator) Version(c *Candidate) schemas.Version { return l.buffers.rows[c.Version].Version }

// readMore reads the next rows.
func (l *Iterator) readMore() error {
	m, scan := l.buffers, rows.Scan{Prefix: SourcePrefix(KindFirstVersion, l.Source), Limit: l.step}
	before := len(m.first)
	if before > 0 {
		scan.From = append([]byte(m.first[before-1].Name), 0)
	}
	var err error
	if m.first, err = m.read(l.table, m.first, scan); err != nil {
		return err
	}
	l.complete = l.step == 0 || len(m.first)-before < l.step
	l.step *= 2
	m.candidatesOf(m.rows, m.mergeKinds(l.complete))
	return nil
}

// read appends the rows of a scan, which covers one kind and source, to a list.
func (m *Buffers) read(t Table, list []CandidateRow, scan rows.Scan) ([]CandidateRow, error) {
	m.text, m.ends = m.text[:0], m.ends[:0]
	err := t.Scan(scan, func(row, value []byte) bool {
		m.text = append(m.text, row...)
		m.ends = append(m.ends, len(m.text))
		m.text = append(m.text, value...)
		m.ends = append(m.ends, len(m.text))
		return true
	})
	if err != nil {
		return list, err
	}
	all, start := string(m.text), 0
	list = slices.Grow(list, len(m.ends)/2)
	for i := 0; i < len(m.ends); i += 2 {
		name, value := m.ends[i], m.ends[i+1]
		r, err := ParseCandidate(len(scan.Prefix), all[start:name], all[name:value])
		if err != nil {
			return list, err
		}
		list = append(list, r)
		start = value
	}
	return list, nil
}

// mergeKinds merges the two kinds and returns the number of sorted rows. The later versions after the last first version that
// was read determine facets, but their place is not known yet.
func (m *Buffers) mergeKinds(complete bool) int {
	m.rows = m.rows[:0]
	rest := m.later
	for _, r := range m.first {
		for len(rest) > 0 && rest[0].Place() < r.Place() {
			m.rows, rest = append(m.rows, rest[0]), rest[1:]
		}
		m.rows = append(m.rows, r)
	}
	ordered := len(m.rows)
	m.rows = append(m.rows, rest...)
	if complete {
		return len(m.rows)
	}
	return ordered
}
