package pools

import (
	"slices"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// A pool is read best first, and only as far as its reader needs: a chunk uses the best 200 of perhaps a thousand rows. The
// highest version of a pin determines its facets, wherever the row of that version is. Therefore later versions are a
// separate kind of row, and all of them are read, because they are few. The first version of a pin is its lowest, because
// versions increase; see schemas.Version. So unread first versions do not matter. Offers of external systems have no such
// order: an external source that has both kinds of rows is read completely.

// scratch is reusable memory for reading rows. What its methods return is valid until it is used for the next source.
type scratch struct {
	text    []byte
	ends    []int     // ends of names and values in turn, or of ids
	weights []float32 // weights of edges

	changed []candidateRow // rows of kind rowChanged
	firsts  []candidateRow // rows of kind rowCandidate that were read so far
	rows    []candidateRow // both kinds; sorted as far as the firsts were read
	pins    pinTable
	found   []candidate
	best    []candidate

	// bodies never overwrites what it returned: it continues after the used part.
	bodies ranked.Bodies
}

// candidateRows reads all rows of a source, best first. The strings of one kind share one allocation.
func candidateRows(t table, source schemas.Source) ([]candidateRow, error) {
	return new(scratch).candidateRows(t, source)
}

// candidateRows is like the function candidateRows, but uses the memory of m.
func (m *scratch) candidateRows(t table, source schemas.Source) ([]candidateRow, error) {
	l, err := m.line(t, source, 0)
	if err == nil {
		err = l.deepen()
	}
	return m.rows, err
}

// line iterates over the candidates of a source, best first, including hidden and seen ones.
type line struct {
	table
	memory *scratch
	source schemas.Source
	step   int  // number of rows to read next; 0: all
	whole  bool // all rows have been read
	next   int  // index in memory.found
	err    error
}

// line returns an iterator over a source. n is how many candidates the reader expects to use; 0: all.
func (m *scratch) line(t table, source schemas.Source, n int) (*line, error) {
	l := &line{table: t, memory: m, source: source, step: n + n/4} // some are seen or hidden
	m.rows, m.firsts, m.found = m.rows[:0], m.firsts[:0], m.found[:0]
	var err error
	m.changed, err = m.read(t, m.changed[:0], rows.Scan{Prefix: sourcePrefix(rowChanged, source)})
	if len(m.changed) > 0 && source.CheckOffered() == nil {
		l.step = 0
	}
	return l, err
}

// peek returns the next candidate without removing it, or nil at the end. It is valid until the next call.
func (l *line) peek() *candidate {
	for l.next == len(l.memory.found) && !l.whole && l.err == nil {
		l.err = l.deepen()
	}
	if l.err != nil || l.next == len(l.memory.found) {
		return nil
	}
	return &l.memory.found[l.next]
}

// take removes the next candidate and returns it, or nil at the end.
func (l *line) take() *candidate {
	c := l.peek()
	if c != nil {
		l.next++
	}
	return c
}

// deepen reads the next rows.
func (l *line) deepen() error {
	m, scan := l.memory, rows.Scan{Prefix: sourcePrefix(rowCandidate, l.source), Limit: l.step}
	before := len(m.firsts)
	if before > 0 {
		scan.From = append([]byte(m.firsts[before-1].name), 0)
	}
	var err error
	if m.firsts, err = m.read(l.table, m.firsts, scan); err != nil {
		return err
	}
	l.whole = l.step == 0 || len(m.firsts)-before < l.step
	l.step *= 2
	m.placesOf(m.rows, m.lineUp(l.whole))
	return nil
}

// read appends the rows of a scan, which covers one kind and source, to a list.
func (m *scratch) read(t table, list []candidateRow, scan rows.Scan) ([]candidateRow, error) {
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
		r, err := parseCandidate(len(scan.Prefix), all[start:name], all[name:value])
		if err != nil {
			return list, err
		}
		list = append(list, r)
		start = value
	}
	return list, nil
}

// lineUp merges the two kinds and returns how many rows are sorted. After the last first version that was read, there are
// only later versions: they determine facets, but their place is not known yet.
func (m *scratch) lineUp(whole bool) int {
	m.rows = m.rows[:0]
	rest := m.changed
	for _, r := range m.firsts {
		for len(rest) > 0 && rest[0].place() < r.place() {
			m.rows, rest = append(m.rows, rest[0]), rest[1:]
		}
		m.rows = append(m.rows, r)
	}
	ordered := len(m.rows)
	m.rows = append(m.rows, rest...)
	if whole {
		return len(m.rows)
	}
	return ordered
}
