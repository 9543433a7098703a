package feed

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// The parts that can be missing from an answer, in the order in which they are listed.
const (
	degradedGenerator = "generator"
	degradedServed    = "served"
	degradedStore     = "store"
	degradedStale     = "stale"
	degradedRelated   = "related"
)

// unknown is the next position while the newest position is not known.
const unknown = math.MaxInt64 - 1

// maxBatch is how many materialized items are checked together at most.
const maxBatch = MaxLimit

// reader reads one materialized feed downwards for one answer: from the position next, one by one, to the trim position.
type reader struct {
	svc  *Service
	user schemas.UserID

	chunk   *schemas.Chunk              // nil: none; remembers entries that the store may not have
	recent  map[int64]schemas.FeedEntry // entries that the chunk remembers; nil: not read yet
	stored  map[int64]schemas.FeedEntry // entries read from the store
	next    int64                       // the next position to read
	trimmed int64                       // the trim position: nothing exists at or below it

	facts       *facts
	skipped     int           // number of invisible items so far
	left        time.Duration // remaining time for reads of the store
	patience    time.Duration // remaining time to wait for entries that have not reached the store
	unavailable bool          // the store failed and is not read again
	stale       bool          // the store lags: items are shown only if the generator vouches for them
	degraded    []string
}

// newReader returns a reader of a user's materialized feed, or of pins for a user ("": nobody in particular).
func (s *Service) newReader(user schemas.UserID) *reader {
	return &reader{
		svc: s, user: user, next: unknown, left: s.cfg.StoreTimeout, patience: s.cfg.CatchUpTimeout,
		stored: map[int64]schemas.FeedEntry{},
		facts:  newFacts(user, s.deps.Deleted),
	}
}

// degrade records why the answer is degraded.
func (r *reader) degrade(reasons ...string) {
	for _, reason := range reasons {
		if !slices.Contains(r.degraded, reason) {
			r.degraded = append(r.degraded, reason)
		}
	}
}

// startBelow starts the reading at the newest position at the time the chunk was built. Entries above it may be the chunk's own.
func (r *reader) startBelow(c *schemas.Chunk) {
	r.next, r.chunk = c.Head, c
}

// prefetch loads at once all facts for the chunk's items and for the materialized items below them.
func (r *reader) prefetch(ctx context.Context, chunk []schemas.ServedItem, limit int) {
	below := served(r.collect(ctx, max(limit-len(chunk), 0)))
	r.learn(ctx, slices.Concat(chunk, below))
}

// visibleNew returns the chunk's items that nothing hides. It does not check that an edge justifies them: the generator has
// checked it, and the store may not have the edge yet. For items that no edge delivered, the generator does not know whether
// the pin is deleted. If the store lags, visibleNew omits them, and they stay in the materialized feed.
func (r *reader) visibleNew(chunk []schemas.ServedItem) []Item {
	items := make([]Item, 0, len(chunk))
	for i := range chunk {
		it := &chunk[i]
		if !r.facts.hides(it, 0) && (!r.stale || visibility.ShownEdges(it) != 0) {
			items = append(items, Item{Pin: r.facts.pin(it), New: true, Source: it.Source, RankScore: it.RankScore})
		}
		r.facts.onPage[it.Pin] = true
	}
	return items
}

// fill appends visible materialized items until there are want, the feed ends, or MaxSkipped items were skipped.
func (r *reader) fill(ctx context.Context, items []Item, want int) []Item {
	for len(items) < want && r.skipped < r.svc.cfg.MaxSkipped && !r.ended() {
		// Read as many as are missing, and more at once when many are hidden.
		n := min(max(want-len(items), r.skipped), maxBatch, r.svc.cfg.MaxSkipped)
		batch := r.collect(ctx, n)
		if len(batch) == 0 {
			if !r.unavailable && !r.ended() {
				r.degrade(degradedStale)
			}
			break
		}
		if !r.learn(ctx, served(batch)) {
			continue // with the entries that are available without the store
		}
		if batch = r.vouched(ctx, batch); len(batch) == 0 {
			break
		}
		items = r.take(items, batch, want)
	}
	return items
}

// collect returns up to n entries from next downwards. It stops at a hole, at the trim position, or at the end of the remembered
// entries if the store is unavailable.
func (r *reader) collect(ctx context.Context, n int) (batch []schemas.FeedEntry) {
	if r.next == unknown {
		r.fetch(ctx, math.MaxInt64, n)
	}
	for position := r.next; len(batch) < n && position > r.trimmed; position-- {
		e, found := r.at(ctx, position, n)
		if !found {
			break
		}
		batch = append(batch, e)
	}
	return batch
}

// vouched returns the newest entries of the batch that may be shown although the store lags: those that the generator
// remembers, in the generator's version. If the store does not lag, vouched returns the batch unchanged.
func (r *reader) vouched(ctx context.Context, batch []schemas.FeedEntry) []schemas.FeedEntry {
	if !r.stale {
		return batch
	}
	for i := range batch {
		e, ok := r.recall(ctx, batch[i].Position)
		if !ok {
			return batch[:i]
		}
		batch[i] = e
	}
	return batch
}

// take appends the visible items of a batch until there are want, and moves next below the last item that it checked.
func (r *reader) take(items []Item, batch []schemas.FeedEntry, want int) []Item {
	for i := range batch {
		if len(items) == want || r.skipped == r.svc.cfg.MaxSkipped {
			break
		}
		r.next = batch[i].Position - 1
		if item, ok := r.visible(&batch[i].ServedItem); ok {
			items = append(items, item)
		} else {
			r.skipped++
		}
	}
	return items
}

func served(batch []schemas.FeedEntry) []schemas.ServedItem {
	items := make([]schemas.ServedItem, len(batch))
	for i := range batch {
		items[i] = batch[i].ServedItem
	}
	return items
}

// visible returns a materialized item as it is to be shown, and false if it is not visible. Without the store, only the
// generator knows which edges are live, and the item is one that it vouches for.
func (r *reader) visible(it *schemas.ServedItem) (Item, bool) {
	needed := visibility.ShownEdges(it)
	if r.unavailable {
		needed = 0
	}
	if swept := it.Pin == ""; swept || r.facts.hides(it, needed) {
		return Item{}, false
	}
	r.facts.onPage[it.Pin] = true
	return Item{Pin: r.facts.pin(it), Source: it.Source, RankScore: it.RankScore}, true
}

// page builds the answer. Next points at the position where the reading stopped.
func (r *reader) page(feed string, items []Item) Page {
	p := Page{Items: items, Degraded: r.degraded}
	if !r.ended() {
		next := r.svc.cursors.sealFeed(feedCursor{user: r.user, feed: feed, below: r.next + 1})
		p.Next = &next
	}
	return p.full()
}

// ended reports whether the feed has no further entries.
func (r *reader) ended() bool { return r.next <= r.trimmed }
