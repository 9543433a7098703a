package rows

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// counting counts the point reads of a store.
type counting struct {
	reader
	gets int
}

func (c *counting) Get(key []byte) ([]byte, io.Closer, error) {
	c.gets++
	return c.reader.Get(key)
}

// listed is a state whose store has some rows, which are listed in a filter of the given size. It counts the reads of the store.
type listed struct {
	*bench
	store *counting
}

func newListed(t *testing.T, rows, filterBytes int) *listed {
	t.Helper()
	b := newBench(t, group())
	l := &listed{b, &counting{reader: b.db}}
	b.state.store, b.existing = l.store, newExisting(filterBytes)
	l.write(t, 0, rows)
	l.list(t)
	return l
}

var listedOwner = ownersOfPartition0(1)[0]

func (l *listed) write(t *testing.T, from, to int) {
	t.Helper()
	must.OK(t, l.call(func(tx *Tx) error {
		for i := from; i < to; i++ {
			tx.Of(listedOwner).Put(fmt.Append(nil, "row-", i), nil)
		}
		return nil
	}))
	l.seal()
	l.applyBatch(t)
}

func (l *listed) list(t *testing.T) {
	t.Helper()
	l.existing.begin()
	hashes, complete, err := l.existing.scan(context.Background(), l.db)
	must.OK(t, err)
	l.existing.end(hashes, complete)
}

// found returns how many rows exist, and how many reads of the store that took.
func (l *listed) found(t *testing.T, name string, n int) (found, gets int) {
	t.Helper()
	before := l.store.gets
	must.OK(t, l.call(func(tx *Tx) error {
		for i := range n {
			value := must.Get(tx.Of(listedOwner).Get(fmt.Append(nil, name, i)))(t)
			if value != nil {
				found++
			}
		}
		return nil
	}))
	return found, l.store.gets - before
}

// Reads of missing rows do not reach the store. Those of rows that exist, were written later, or were deleted do.
func TestExisting_MissingRowsAreNotRead(t *testing.T) {
	t.Parallel()
	const rows = 5000
	l := newListed(t, rows, 1<<20)
	l.write(t, rows, rows+100)
	if found, gets := l.found(t, "missing-", 2*rows); found > 0 || gets > 2*rows*3/100 {
		t.Errorf("%d of %d missing rows were read, want at most 3 %%; %d were found", gets, 2*rows, found)
	}
	if found, _ := l.found(t, "row-", rows+100); found != rows+100 {
		t.Errorf("%d of %d rows were found", found, rows+100)
	}
}

// A filter that is full asks for another list of the rows, once. The next one has room again.
func TestExisting_ListsRowsAgainWhenFull(t *testing.T) {
	t.Parallel()
	l := newListed(t, 10, 1<<20)
	for i := range 3 {
		l.write(t, i*25_000, (i+1)*25_000)
		must.Equal(t, len(l.existing.full), i/2, "requests after %d rows", (i+1)*25_000)
	}
	l.list(t)
	l.write(t, 75_000, 76_000)
	expect.Equal(t, len(l.existing.full), 0, "requests after the list")
	if found, gets := l.found(t, "missing-", 1000); found > 0 || gets > 30 {
		t.Errorf("%d of 1000 missing rows were read, want at most 3 %%; %d were found", gets, found)
	}
}

// A store with more rows than half the filter's capacity has no filter, and a disabled filter needs no memory.
func TestExisting_NeedsMemory(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1000, minFilterRows * filterBits / 8} {
		l := newListed(t, minFilterRows/2+100, size)
		if found, gets := l.found(t, "missing-", 100); found > 0 || gets != 100 || l.existing.filter != nil {
			t.Errorf("%d bytes: %d of 100 missing rows were read, want all; %d were found", size, gets, found)
		}
		if found, _ := l.found(t, "row-", 100); found != 100 {
			t.Errorf("%d bytes: %d of 100 rows were found", size, found)
		}
	}
}
