package rows

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"
	"github.com/parquet-go/parquet-go/bloom"
)

// existing knows which rows a store may contain, in a split block Bloom filter (https://arxiv.org/abs/2101.01719) in memory. Most reads
// of callbacks are for rows that do not exist, such as a new id or a user's first action on a board. Pebble needs 3 to 10 µs
// for such a read, because it searches the memtables and opens a table of every level.
//
// A scan of the store fills the filter while the partition already works; until then, every row may exist. Deletions leave the
// filter unchanged. When it is full, another scan fills a new one. The zero value knows nothing.
type existing struct {
	maxRows  int // the capacity that its memory suffices for
	seed     maphash.Seed
	filter   bloom.SplitBlockFilter // nil: unknown
	capacity int                    // rows of the filter, with one false positive in a hundred missing rows
	rows     int                    // in the filter
	full     chan struct{}          // signals that it is full
	scanning bool
	written  []uint64 // hashes of the rows that were written during the scan
}

const (
	filterBits    = 10 // per row
	minFilterRows = 1 << 16
)

func newExisting(maxBytes int) existing {
	return existing{maxRows: maxBytes * 8 / filterBits, seed: maphash.MakeSeed(), full: make(chan struct{}, 1)}
}

// mayContain returns false if the store certainly lacks a row. key is as in the store.
func (e *existing) mayContain(key []byte) bool {
	return e.filter == nil || e.filter.Check(maphash.Bytes(e.seed, key))
}

// apply adds the rows of a batch that the store now contains.
func (e *existing) apply(b *batch) {
	if e.filter == nil && !e.scanning {
		return
	}
	for i := range b.writes {
		if w := &b.writes[i]; !w.deleted {
			e.add(maphash.Bytes(e.seed, b.at(w.key)))
		}
	}
	if e.rows > e.capacity && !e.scanning {
		wake(e.full)
	}
}

func (e *existing) add(hash uint64) {
	if e.scanning {
		e.written = append(e.written, hash)
	}
	if e.filter != nil && !e.filter.Check(hash) {
		e.filter.Insert(hash)
		e.rows++
	}
}

// begin is called before a scan takes its snapshot of the store.
func (e *existing) begin() {
	select {
	case <-e.full:
	default:
	}
	e.scanning, e.written = true, nil
}

// end replaces the filter after a scan. The new one has room for as many rows again. Without the memory for that, or after an
// incomplete scan, every row may exist.
func (e *existing) end(hashes []uint64, complete bool) {
	hashes = append(hashes, e.written...)
	e.scanning, e.written, e.filter, e.rows = false, nil, nil, 0
	e.capacity = max(2*len(hashes), minFilterRows)
	if !complete || e.capacity > e.maxRows {
		return
	}
	e.filter = make(bloom.SplitBlockFilter, bloom.NumSplitBlocksOf(int64(e.capacity), filterBits))
	for _, hash := range hashes {
		e.add(hash)
	}
}

// scan returns the hashes of all rows of a store. The result is incomplete if there are more than the filter may hold.
func (e *existing) scan(ctx context.Context, db *pebble.DB) (hashes []uint64, complete bool, err error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return nil, false, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if 2*len(hashes) > e.maxRows || len(hashes)%4096 == 0 && ctx.Err() != nil {
			return nil, false, it.Close()
		}
		hashes = append(hashes, maphash.Bytes(e.seed, it.Key()))
	}
	return hashes, true, it.Close()
}

// watchExisting finds out which rows exist, and again each time the filter is full.
func (p *partition) watchExisting() {
	for p.state.existing.maxRows >= minFilterRows { // otherwise, no scan would lead to a filter
		if err := p.findExisting(); err != nil {
			p.run.r.log.Warn("cannot list the rows of the local store, reads of missing rows cost more", "partition", p.id, "error", err)
		}
		select {
		case <-p.state.existing.full:
		case <-p.ctx.Done():
			return
		}
	}
}

// findExisting scans the store, one store of the process at a time.
func (p *partition) findExisting() error {
	select {
	case p.run.r.shared.scans <- struct{}{}:
		defer func() { <-p.run.r.shared.scans }()
	case <-p.ctx.Done():
		return nil
	}
	p.mu.Lock()
	p.state.existing.begin()
	p.mu.Unlock()
	hashes, complete, err := p.state.existing.scan(p.ctx, p.store.db)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.existing.end(hashes, complete && err == nil)
	if err != nil {
		return fmt.Errorf("scan store %s: %w", p.store.dir, p.store.check(err))
	}
	return nil
}
