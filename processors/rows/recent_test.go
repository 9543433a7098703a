package rows

import (
	"bytes"
	"fmt"
	"testing"
)

// held returns the number of cached owners and the size of their rows.
func (r *recentRows) held() (owners, size int) {
	for _, generation := range []map[string]*recentOwner{r.young, r.old} {
		for name, o := range generation {
			owners++
			size += len(name) + recentOverhead
			for i := range o.rows {
				size += o.rows[i].size()
			}
		}
	}
	return owners, size
}

// The size of the cache is bounded, and rows that are read repeatedly stay in it.
func TestRecentRowsAreBounded(t *testing.T) {
	const most = 64 << 10
	r := newRecentRows(most)
	value := make([]byte, 100)
	r.put("often", []byte("row"), value)
	for i := range 20_000 {
		owner := fmt.Sprint("owner", i)
		for row := range 1 + i%40 {
			r.put(owner, fmt.Append(nil, row), value[:row])
		}
		if r.get("often", []byte("row")) == nil {
			t.Fatalf("after %d owners, the one that is asked for each time is gone", i)
		}
	}
	if owners, size := r.held(); size > 3*most || owners < 2 {
		t.Errorf("%d bytes of %d owners are kept, want at most two generations of %d and what one owner has", size, owners, most)
	}
	if r.put("large", []byte("row"), make([]byte, most/8+1)); r.get("large", []byte("row")) != nil {
		t.Error("a row of an eighth of all memory is kept")
	}
	none := newRecentRows(0)
	if none.put("o", []byte("row"), nil); none.get("o", []byte("row")) != nil {
		t.Error("without room a row is kept")
	}
}

// Cached rows that grow count with their new size.
func TestRecentRowsGrow(t *testing.T) {
	r := newRecentRows(1 << 20)
	r.put("o", []byte("row"), []byte("1"))
	b := newBatch(0)
	b.put(b.log("o"), "o", []byte("row"), make([]byte, 5000), false)
	b.put(b.log("other"), "other", []byte("row"), nil, false)
	r.landed(b)
	if got := r.get("o", []byte("row")); !bytes.Equal(got, make([]byte, 5000)) {
		t.Errorf("got %d bytes, want those that landed", len(got))
	}
	if owners, size := r.held(); size != r.bytes || owners != 1 {
		t.Errorf("%d bytes of %d owners are kept, and %d counted", size, owners, r.bytes)
	}
}
