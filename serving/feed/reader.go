package feed

import (
	"context"
	"errors"
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
	peek bool // the answer shows the items of its chunk without a visit

	chunk   *schemas.Chunk              // nil: none; remembers entries that the store may not have
	recent  map[int64]schemas.FeedEntry // entries that the chunk remembers; nil: not read yet
	stored  map[int64]schemas.FeedEntry // entries read from the store
	next    int64                       // the next position to read
	trimmed int64                       // the trim position: nothing exists at or below it

	facts       *facts
	skipped     int           // number of invisible items so far
	left        time.Duration // remaining time for reads of the store
	catchUpLeft time.Duration // remaining time to wait for entries that have not reached the store
	unavailable bool          // the store failed and is not read again
	stale       bool          // the store lags: items are shown only if the generator confirms them
	degraded    []string
}

// newReader returns a reader of a user's materialized feed, or of pins for a user ("": no particular user).
func (s *Service) newReader(user schemas.UserID) *reader {
	return &reader{
		svc: s, user: user, next: unknown, left: s.cfg.ReadTimeout, catchUpLeft: s.cfg.CatchUpTimeout,
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

// startBelow starts the reading at the newest position at the time the chunk was built. Entries above it may be the
// chunk's own.
func (r *reader) startBelow(c *schemas.Chunk) {
	r.next, r.chunk = c.Head, c
}

// prefetch loads at once all facts for the chunk's items and for the materialized items below them.
func (r *reader) prefetch(ctx context.Context, chunk []schemas.ServedItem, limit int) {
	below := served(r.collect(ctx, max(limit-len(chunk), 0)))
	r.loadFacts(ctx, slices.Concat(chunk, below))
}

// visibleNew returns the chunk's items that nothing hides. It does not check that an edge justifies them: the generator has
// checked it, and the store may not have the edge yet. For items that no edge delivered, the generator does not know
// whether the pin is deleted. If the store lags, visibleNew omits them, and they stay in the materialized feed.
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

// fill appends visible materialized items until there are want, the feed ends, or MaxSkippedItems items were skipped.
func (r *reader) fill(ctx context.Context, items []Item, want int) []Item {
	for len(items) < want && r.skipped < r.svc.cfg.MaxSkippedItems && !r.ended() {
		// Read as many as are missing, and more at once when many are hidden.
		n := min(max(want-len(items), r.skipped), maxBatch, r.svc.cfg.MaxSkippedItems)
		batch := r.collect(ctx, n)
		if len(batch) == 0 {
			if !r.unavailable && !r.ended() {
				r.degrade(degradedStale)
			}
			break
		}
		if !r.loadFacts(ctx, served(batch)) {
			continue // with the entries that are available without the store
		}
		if batch = r.confirmed(ctx, batch); len(batch) == 0 {
			break
		}
		items = r.take(items, batch, want)
	}
	return items
}

// collect returns up to n entries from next downwards. It stops at a hole, at the trim position, or at the end of the
// remembered entries if the store is unavailable.
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

// at returns the entry at a position. If necessary, it reads n more entries from the store. found is false at a hole,
// at the trim position, and if the store is unavailable. The first expired entry becomes the trim position, and so does
// the first position read for an erased user. A hole is usually an entry in flight: an entry of a recent visit reaches
// the store within milliseconds. Therefore at retries for as long as Config.CatchUpTimeout allows.
func (r *reader) at(ctx context.Context, position int64, n int) (e schemas.FeedEntry, found bool) {
	for {
		if e, found = r.known(ctx, position); found {
			return e, true
		}
		read := r.fetch(ctx, position+1, n)
		if e, found = r.known(ctx, position); found || r.unavailable || position <= r.trimmed {
			return e, found
		}
		if read == 0 && (r.erased(ctx) || r.expired(ctx, position)) {
			r.trimmed = position
			return e, false
		}
		if !r.pause(ctx) {
			return e, false
		}
	}
}

func (r *reader) known(ctx context.Context, position int64) (schemas.FeedEntry, bool) {
	if position <= r.trimmed {
		return schemas.FeedEntry{}, false
	}
	if e, ok := r.stored[position]; ok && !r.unavailable { // without the store, the visibility of e is unknown
		return e, true
	}
	e, ok := r.recall(ctx, position)
	if ok && !r.unavailable && r.old(&e) { // the generator remembers it for longer than the store: the pages below could not continue
		return schemas.FeedEntry{}, false
	}
	return e, ok
}

// recall looks up a position among the entries that the generator remembers. The first call loads them. If they cannot be
// read, they count as missing: the answer then reports that the store lacks the entry, too.
func (r *reader) recall(ctx context.Context, position int64) (schemas.FeedEntry, bool) {
	if r.recent == nil && r.chunk != nil {
		entries, err := r.chunk.RecentEntries(ctx)
		if err != nil {
			entries = nil
		}
		r.recent = make(map[int64]schemas.FeedEntry, len(entries))
		for _, e := range entries {
			r.recent[e.Position] = e
		}
	}
	e, ok := r.recent[position]
	return e, ok
}

// old reports whether an entry was served so long ago that the store has removed it.
func (r *reader) old(e *schemas.FeedEntry) bool {
	ttl := r.svc.deps.TTL
	return ttl > 0 && r.svc.deps.Now().Sub(e.Time.Time()) >= ttl
}

// fetch reads at most n entries from the store and returns how many it got.
func (r *reader) fetch(ctx context.Context, below int64, n int) int {
	rows, ok := callStore(ctx, r, r.read(below, n))
	if ok {
		r.addRows(rows)
	}
	return len(rows.entries)
}

// storedRows is a range of a materialized feed, as read from the store.
type storedRows struct {
	entries []schemas.FeedEntry
	trimmed int64
}

// read returns a store call that reads at most n entries.
func (r *reader) read(below int64, n int) func(context.Context) (storedRows, error) {
	return func(ctx context.Context) (storedRows, error) {
		entries, trimmed, err := r.svc.deps.Store.Page(ctx, r.user, below, n)
		return storedRows{entries, trimmed}, err
	}
}

// addRows adds rows from the store. Without a chunk, the first of them is the newest position.
func (r *reader) addRows(rows storedRows) {
	r.trimmed = max(r.trimmed, rows.trimmed)
	for _, e := range rows.entries {
		r.stored[e.Position] = e
	}
	if r.next == unknown {
		r.next = r.trimmed
		if len(rows.entries) > 0 {
			r.next = rows.entries[0].Position
		}
	}
}

// callStore calls the store within the remaining time, see await.
func callStore[T any](ctx context.Context, r *reader, f func(context.Context) (T, error)) (value T, ok bool) {
	if r.unavailable {
		return value, false
	}
	return await(r, begin(ctx, r.svc.store, r.left, f, nil))
}

// await waits for a call to the store and subtracts the time from the rest. It returns false if the call fails or is late.
// After that, the store is not called again.
func await[T any](r *reader, c *call[T]) (value T, ok bool) {
	start := r.svc.deps.Now()
	value, err := c.wait()
	r.left -= r.svc.deps.Now().Sub(start)
	switch {
	case errors.Is(err, ErrStale):
		r.stale = true
		r.degrade(degradedStale)
		return value, true
	case err != nil:
		r.unavailable = true
		r.degrade(degradedStore)
	}
	return value, err == nil
}

// erased reports whether the user is deleted. The store has then deleted the whole feed with its trim position, and no
// entry is in flight. It asks the store only if the store has returned no entry of the user.
func (r *reader) erased(ctx context.Context) bool {
	if len(r.stored) > 0 {
		return false
	}
	me := schemas.ServedItem{Facets: schemas.Facets{Author: r.user}}
	return r.loadDeleted(ctx, []schemas.ServedItem{me}) && r.facts.Has(r.user)
}

// expired reports whether the entry at position, and all older entries, were removed because of Deps.TTL. The store has no
// entry below position. The entry has expired if it was served more than the TTL ago.
//
// If the generator does not remember the entry, the content of the store decides. The store receives the entries of a user
// in order, so an entry below others that it has is not in flight. The exception is a store that lacks the entry just above
// although it is too young to have expired. Such a store has lost that entry or not yet received it, and the same can be
// true of this one.
func (r *reader) expired(ctx context.Context, position int64) bool {
	if r.svc.deps.TTL <= 0 {
		return false
	}
	if _, remembered := r.recall(ctx, position); remembered {
		return true // known has rejected it as too old
	}
	_, above := r.recall(ctx, position+1)
	if _, stored := r.stored[position+1]; above && !stored {
		return false
	}
	for p := range r.stored {
		if p > position {
			return true
		}
	}
	newest, ok := callStore(ctx, r, r.read(math.MaxInt64, 1))
	return ok && len(newest.entries) > 0 && newest.entries[0].Position > position
}

// pause waits a moment for a store that lags. It returns false when the catch-up time of this answer is used up.
func (r *reader) pause(ctx context.Context) bool {
	const step = 5 * time.Millisecond
	if r.catchUpLeft < step || r.left < step {
		return false
	}
	r.catchUpLeft -= step
	r.left -= step
	select {
	case <-time.After(step):
		return true
	case <-ctx.Done():
		return false
	}
}

// confirmed returns the newest entries of the batch that may be shown although the store lags: those that the generator
// remembers, in the generator's version. If the store does not lag, confirmed returns the batch unchanged.
func (r *reader) confirmed(ctx context.Context, batch []schemas.FeedEntry) []schemas.FeedEntry {
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
		if len(items) == want || r.skipped == r.svc.cfg.MaxSkippedItems {
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
// generator knows which edges are live, and the item is one that it confirms.
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

// ended reports whether the feed has no further entries.
func (r *reader) ended() bool { return r.next <= r.trimmed }
