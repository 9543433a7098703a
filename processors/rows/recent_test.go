package rows

import (
	"fmt"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

// held returns the number and the size of the cached rows.
func (r *recentRows) held() (rows, size int) {
	for _, cached := range []map[string]*recentRow{r.young, r.old} {
		for _, row := range cached {
			rows++
			size += row.size()
		}
	}
	return rows, size
}

// The size of the cache is bounded, and rows that are read repeatedly remain in it.
func TestRecentRows_AreBounded(t *testing.T) {
	const most = 64 << 10
	r := newRecentRows(most)
	value := make([]byte, 100)
	r.put([]byte("often"), value)
	for i := range 20_000 {
		for row := range 1 + i%40 {
			r.put(fmt.Append(nil, "owner", i, "row", row), value[:row])
		}
		if r.get([]byte("often")) == nil {
			t.Fatalf("after %d owners, the row that is read each time is evicted", i)
		}
	}
	if rows, size := r.held(); size > 2*most || rows < 2 {
		t.Errorf("%d bytes of %d rows are cached, want at most two generations of %d", size, rows, most)
	}
	r.put([]byte("large"), make([]byte, most/8+1))
	expect.NoDiff(t, r.get([]byte("large")), nil, "a row of more than an eighth of a generation")
	none := newRecentRows(0)
	none.put([]byte("row"), nil)
	expect.NoDiff(t, none.get([]byte("row")), nil, "a row of a cache without memory")
}

// Cached rows that a batch changes have their new value and size.
func TestRecentRows_FollowTheBatch(t *testing.T) {
	r := newRecentRows(1 << 20)
	r.put([]byte("o\x00row"), []byte("1"))
	r.put([]byte("o\x00deleted"), []byte("2"))
	b := newBatch(0)
	b.put(b.log("o"), "o", []byte("row"), make([]byte, 5000), false)
	b.put(b.log("o"), "o", []byte("deleted"), nil, true)
	b.put(b.log("other"), "other", []byte("row"), nil, false)
	r.apply(b)
	expect.NoDiff(t, r.get([]byte("o\x00row")), make([]byte, 5000), "row of the batch")
	rows, size := r.held()
	expect.Equal(t, [2]int{rows, size}, [2]int{1, r.bytes}, "cached rows and bytes")
}
