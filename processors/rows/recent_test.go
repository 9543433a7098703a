package rows

import (
	"bytes"
	"fmt"
	"testing"
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
	if r.put([]byte("large"), make([]byte, most/8+1)); r.get([]byte("large")) != nil {
		t.Error("a row of more than an eighth of a generation is cached")
	}
	none := newRecentRows(0)
	if none.put([]byte("row"), nil); none.get([]byte("row")) != nil {
		t.Error("a cache without memory has a row")
	}
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
	if got := r.get([]byte("o\x00row")); !bytes.Equal(got, make([]byte, 5000)) {
		t.Errorf("got %d bytes, want the bytes of the batch", len(got))
	}
	if rows, size := r.held(); size != r.bytes || rows != 1 {
		t.Errorf("%d bytes of %d rows are cached, and %d counted", size, rows, r.bytes)
	}
}
