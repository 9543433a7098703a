package rows

import (
	"bytes"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Scan selects the rows of an owner to visit.
type Scan struct {
	Prefix  []byte // only rows with this prefix; nil: all
	From    []byte // forward: rows >= From; reverse: rows <= From; nil: from the first or last row
	Reverse bool   // in descending order
	Limit   int    // 0: no limit
}

// bounds returns the range of rows to visit: lower <= row < upper. If upper is nil, the range has no upper bound.
func (s Scan) bounds() (lower, upper []byte) {
	lower, upper = s.Prefix, prefixEnd(s.Prefix)
	if s.From == nil {
		return lower, upper
	}
	if !s.Reverse {
		if bytes.Compare(s.From, lower) > 0 {
			lower = s.From
		}
		return lower, upper
	}
	if upper == nil || bytes.Compare(s.From, upper) < 0 {
		upper = append(bytes.Clone(s.From), 0) // the next key in order: From itself is visited
	}
	return lower, upper
}

// reader is implemented by a Pebble store.
type reader interface {
	Get(key []byte) ([]byte, io.Closer, error)
	iterable
}

// iterable is implemented by a Pebble store and by a snapshot.
type iterable interface {
	NewIter(*pebble.IterOptions) (*pebble.Iterator, error)
}

// cursor iterates over the rows of one source in the order of a scan.
type cursor interface {
	row() []byte // nil: at the end
	value() (value []byte, deleted bool, err error)
	next()
}

// storeCursor iterates over rows in Pebble.
type storeCursor struct {
	it      *pebble.Iterator
	head    int // length of the key before the row name
	reverse bool
}

// newStoreCursor opens a cursor over an owner's rows. Close it after use. The empty owner has the reserved rows.
func newStoreCursor(r iterable, owner string, s Scan) (*storeCursor, error) {
	lower, upper := s.bounds()
	head := append([]byte(owner), separator)
	opts := pebble.IterOptions{LowerBound: append(head[:len(head):len(head)], lower...)}
	if upper != nil {
		opts.UpperBound = append(head[:len(head):len(head)], upper...)
	} else {
		opts.UpperBound = append([]byte(owner), separator+1)
	}
	it, err := r.NewIter(&opts)
	if err != nil {
		return nil, err
	}
	if s.Reverse {
		it.Last()
	} else {
		it.First()
	}
	return &storeCursor{it: it, head: len(head), reverse: s.Reverse}, nil
}

func (c *storeCursor) row() []byte {
	if !c.it.Valid() {
		return nil
	}
	return c.it.Key()[c.head:]
}

func (c *storeCursor) value() ([]byte, bool, error) {
	value, err := c.it.ValueAndErr()
	return value, false, err
}

func (c *storeCursor) next() {
	if c.reverse {
		c.it.Prev()
	} else {
		c.it.Next()
	}
}

// walk visits rows until visit returns false, or limit rows if limit is not 0.
func (c *storeCursor) walk(limit int, visit func(row, value []byte) bool) error {
	for visited := 0; c.it.Valid() && (limit == 0 || visited < limit); visited++ {
		value, err := c.it.ValueAndErr()
		if err != nil {
			return err
		}
		if !visit(c.it.Key()[c.head:], value) {
			return nil
		}
		c.next()
	}
	return nil
}

// close closes the cursor. It also returns an error that ended the iteration early.
func (c *storeCursor) close() error { return errors.Join(c.it.Error(), c.it.Close()) }

// batchCursor iterates over an owner's rows in a batch.
type batchCursor struct {
	b    *batch
	rest []int32
	step int // 1 forward: the next row is the first of rest; -1 reverse: the last
}

// newBatchCursor returns nil if the batch has no such rows.
func newBatchCursor(b *batch, owner string, s Scan) *batchCursor {
	l := b.owners[owner]
	if l == nil || l.last < 0 {
		return nil
	}
	sorted := b.ordered(l)
	lower, upper := s.bounds()
	from, _ := b.find(sorted, lower)
	to := len(sorted)
	if upper != nil {
		to, _ = b.find(sorted, upper)
	}
	if from >= to {
		return nil
	}
	l.shared = true
	c := &batchCursor{b: b, rest: sorted[from:to], step: 1}
	if s.Reverse {
		c.step = -1
	}
	return c
}

func (c *batchCursor) head() int32 {
	if c.step > 0 {
		return c.rest[0]
	}
	return c.rest[len(c.rest)-1]
}

func (c *batchCursor) row() []byte {
	if len(c.rest) == 0 {
		return nil
	}
	return c.b.rowName(c.head())
}

func (c *batchCursor) value() ([]byte, bool, error) {
	w := &c.b.writes[c.head()]
	return c.b.at(w.value), w.deleted, nil
}

func (c *batchCursor) next() {
	if c.step > 0 {
		c.rest = c.rest[1:]
	} else {
		c.rest = c.rest[:len(c.rest)-1]
	}
}

// merge visits the rows of several cursors in order. If several cursors have a row, the first of them counts.
func merge(cursors []cursor, s Scan, visit func(row, value []byte) bool) error {
	for visited := 0; s.Limit == 0 || visited < s.Limit; {
		first := firstOf(cursors, s.Reverse)
		if first == nil {
			return nil
		}
		row := first.row()
		value, deleted, err := first.value()
		if err != nil {
			return err
		}
		if !deleted {
			visited++
			if !visit(row, value) {
				return nil
			}
		}
		for _, c := range cursors { // move first last, because its move may overwrite row
			if c != first && bytes.Equal(c.row(), row) && c.row() != nil {
				c.next()
			}
		}
		first.next()
	}
	return nil
}

// firstOf returns the cursor whose row comes first, or nil if all are at the end.
func firstOf(cursors []cursor, reverse bool) cursor {
	var first cursor
	for _, c := range cursors {
		row := c.row()
		if row == nil {
			continue
		}
		if first != nil {
			order := bytes.Compare(row, first.row())
			if order == 0 || (order > 0) != reverse {
				continue
			}
		}
		first = c
	}
	return first
}
