package pools

import (
	"slices"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// A pool is read best first, and no further than its reader goes: a chunk wants the best 200 of what may be a thousand rows.
// The highest version of a pin says what the pin is, wherever that version stands. So later versions are rows of a kind of
// their own, and all of these are read: they are few. A pin's first version is its lowest, as versions are stamped in ascending order (see
// schemas.Version), so nothing that is left unread has a say. What other systems offer has no such order, and is read
// whole where it is beside first versions.

// scratch is memory for reading rows, to be used again for the next source: what its methods return is valid until then.
type scratch struct {
	text    []byte
	ends    []int     // of names and values in turn, or of ids
	weights []float32 // of edges

	changed []candidateRow // of rowChanged
	firsts  []candidateRow // of rowCandidate, as far as they are read
	rows    []candidateRow // both, in order as far as the firsts are read
	pins    pinTable
	found   []candidate
	best    []candidate

	// bodies never overwrites what was read with it: it goes on behind the part that is used up.
	bodies ranked.Bodies
}

// candidateRows reads all rows of a source, best first. The strings of a kind share one piece of memory.
func candidateRows(t table, source schemas.Source) ([]candidateRow, error) {
	return new(scratch).candidateRows(t, source)
}

// candidateRows is the function of that name.
func (m *scratch) candidateRows(t table, source schemas.Source) ([]candidateRow, error) {
	l, err := m.line(t, source, 0)
	if err == nil {
		err = l.deepen()
	}
	return m.rows, err
}

// line yields the candidates of a source, best first, whatever their standing.
type line struct {
	table
	memory *scratch
	source schemas.Source
	step   int  // rows to read next, 0: all
	whole  bool // all are read
	next   int  // of memory.found
	err    error
}

// line returns the line of a source. Its reader is expected to want n candidates; 0: all.
func (m *scratch) line(t table, source schemas.Source, n int) (*line, error) {
	l := &line{table: t, memory: m, source: source, step: n + n/4} // some are seen, or hidden
	m.rows, m.firsts, m.found = m.rows[:0], m.firsts[:0], m.found[:0]
	var err error
	m.changed, err = m.read(t, m.changed[:0], rows.Scan{Prefix: sourcePrefix(rowChanged, source)})
	if len(m.changed) > 0 && source.CheckOffered() == nil {
		l.step = 0
	}
	return l, err
}

// peek returns the first candidate that was not taken, nil at the end. It is valid until the next call.
func (l *line) peek() *candidate {
	for l.next == len(l.memory.found) && !l.whole && l.err == nil {
		l.err = l.deepen()
	}
	if l.err != nil || l.next == len(l.memory.found) {
		return nil
	}
	return &l.memory.found[l.next]
}

// take removes the first candidate and returns it, nil at the end.
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

// read appends the rows of a scan of one kind and source to a list.
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

// lineUp merges the kinds, and returns how many rows are in order: behind the last first version that is read stand only
// later versions, which have a say, but no place yet.
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
