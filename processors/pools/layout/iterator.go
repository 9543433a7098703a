package layout

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

// Buffers is reusable memory for reading rows. What its methods return is valid until it is used for the next source.
type Buffers struct {
	text    []byte
	ends    []int     // ends of names and values in turn, or of ids
	weights []float32 // weights of edges

	Later []CandidateRow // rows of kind rowChanged
	first []CandidateRow // rows of kind rowCandidate that were read so far
	Rows  []CandidateRow // both kinds; sorted as far as the firsts were read
	pins  pinTable
	Found []Candidate
	Best  []Candidate

	// bodies never overwrites what it returned: it continues after the used part.
	Bodies ranked.Bodies
}

// CandidateRows reads all rows of a source, best first. The strings of one kind share one allocation.
func CandidateRows(t Table, source schemas.Source) ([]CandidateRow, error) {
	return new(Buffers).CandidateRows(t, source)
}

// CandidateRows is like the function candidateRows, but uses the memory of m.
func (m *Buffers) CandidateRows(t Table, source schemas.Source) ([]CandidateRow, error) {
	l, err := m.Iterate(t, source, 0)
	if err == nil {
		err = l.ReadMore()
	}
	return m.Rows, err
}

// Iterator iterates over the candidates of a source, best first, including hidden and seen ones.
type Iterator struct {
	Table
	Buffers  *Buffers
	Source   schemas.Source
	step     int  // number of rows to read next; 0: all
	complete bool // all rows have been read
	next     int  // index in memory.found
	Err      error
}

// Iterate returns an iterator over a source. n is how many candidates the reader expects to use; 0: all.
func (m *Buffers) Iterate(t Table, source schemas.Source, n int) (*Iterator, error) {
	l := &Iterator{Table: t, Buffers: m, Source: source, step: n + n/4} // some are seen or hidden
	m.Rows, m.first, m.Found = m.Rows[:0], m.first[:0], m.Found[:0]
	var err error
	m.Later, err = m.read(t, m.Later[:0], rows.Scan{Prefix: SourcePrefix(KindLaterVersion, source)})
	if len(m.Later) > 0 && source.CheckOffered() == nil {
		l.step = 0
	}
	return l, err
}

// Peek returns the next candidate without removing it, or nil at the end. It is valid until the next call.
func (l *Iterator) Peek() *Candidate {
	for l.next == len(l.Buffers.Found) && !l.complete && l.Err == nil {
		l.Err = l.ReadMore()
	}
	if l.Err != nil || l.next == len(l.Buffers.Found) {
		return nil
	}
	return &l.Buffers.Found[l.next]
}

// Take removes the next candidate and returns it, or nil at the end.
func (l *Iterator) Take() *Candidate {
	c := l.Peek()
	if c != nil {
		l.next++
	}
	return c
}

// ReadMore reads the next rows.
func (l *Iterator) ReadMore() error {
	m, scan := l.Buffers, rows.Scan{Prefix: SourcePrefix(KindFirstVersion, l.Source), Limit: l.step}
	before := len(m.first)
	if before > 0 {
		scan.From = append([]byte(m.first[before-1].Name), 0)
	}
	var err error
	if m.first, err = m.read(l.Table, m.first, scan); err != nil {
		return err
	}
	l.complete = l.step == 0 || len(m.first)-before < l.step
	l.step *= 2
	m.candidatesOf(m.Rows, m.mergeKinds(l.complete))
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

// mergeKinds merges the two kinds and returns how many rows are sorted. After the last first version that was read, there are
// only later versions: they determine facets, but their place is not known yet.
func (m *Buffers) mergeKinds(whole bool) int {
	m.Rows = m.Rows[:0]
	rest := m.Later
	for _, r := range m.first {
		for len(rest) > 0 && rest[0].Place() < r.Place() {
			m.Rows, rest = append(m.Rows, rest[0]), rest[1:]
		}
		m.Rows = append(m.Rows, r)
	}
	ordered := len(m.Rows)
	m.Rows = append(m.Rows, rest...)
	if whole {
		return len(m.Rows)
	}
	return ordered
}
