package feed

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/pause"
	"github.com/smartfeed/smartfeed/schemas"
)

// What can be missing from an answer, in the order in which it is told.
const (
	degradedGenerator = "generator"
	degradedServed    = "served"
	degradedStore     = "store"
	degradedStale     = "stale"
	degradedRelated   = "related"
)

// unknown is the next position as long as nobody has said what the newest is.
const unknown = math.MaxInt64 - 1

// maxBatch is how many frozen items are looked at together at most.
const maxBatch = MaxLimit

// reading goes down one frozen feed for one answer: from the position next, one by one, to the trim floor.
type reading struct {
	svc  *Service
	user schemas.UserID

	chunk  *schemas.Chunk              // nil: none; remembers what the store may not have
	recent map[int64]schemas.FeedEntry // what it remembers; nil: it was not asked
	stored map[int64]schemas.FeedEntry // what the store gave
	next   int64                       // the position to look at
	floor  int64                       // there is nothing at or below it

	facts    facts
	onPage   map[schemas.PinID]bool
	skipped  int           // invisible items passed over
	left     time.Duration // of the time for the store
	patience time.Duration // of the time to wait for entries on their way
	broken   bool          // the store failed: it is not asked again
	stale    bool          // the store lags: what it does not hide is shown only if the generator shows it
	degraded []string
}

func (s *Service) newReading(user schemas.UserID) *reading {
	return &reading{
		svc: s, user: user, next: unknown, left: s.cfg.StoreTimeout, patience: s.cfg.CatchUpTimeout,
		stored: map[int64]schemas.FeedEntry{},
		facts:  newFacts(user, s.deps.Deleted), onPage: map[schemas.PinID]bool{},
	}
}

func (r *reading) degrade(reason string) {
	if !slices.Contains(r.degraded, reason) {
		r.degraded = append(r.degraded, reason)
	}
}

// below starts at what was the newest when the chunk was built: whatever the store has above it can be the chunk's own.
func (r *reading) below(c *schemas.Chunk) {
	r.next, r.chunk = c.Head, c
}

// recall asks the generator's memory for an entry, which is read the first time. What cannot be read is not there: the
// answer says that the store lacks it, too.
func (r *reading) recall(ctx context.Context, position int64) (schemas.FeedEntry, bool) {
	if r.recent == nil && r.chunk != nil {
		entries, err := r.chunk.Remembered(ctx)
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

// frozenRows is what the store has of a stretch of a feed.
type frozenRows struct {
	entries []schemas.FeedEntry
	floor   int64
}

// read is a call of the store for at most n entries.
func (r *reading) read(below int64, n int) func(context.Context) (frozenRows, error) {
	return func(ctx context.Context) (frozenRows, error) {
		entries, floor, err := r.svc.deps.Store.Page(ctx, r.user, below, n)
		return frozenRows{entries, floor}, err
	}
}

// absorb takes what the store gave. Without a chunk the first of it is the newest there is.
func (r *reading) absorb(rows frozenRows) {
	r.floor = max(r.floor, rows.floor)
	for _, e := range rows.entries {
		r.stored[e.Position] = e
	}
	if r.next == unknown {
		r.next = r.floor
		if len(rows.entries) > 0 {
			r.next = rows.entries[0].Position
		}
	}
}

// ask calls the store within what is left of its time, see await.
func ask[T any](ctx context.Context, r *reading, f func(context.Context) (T, error)) (value T, ok bool) {
	if r.broken {
		return value, false
	}
	return await(r, begin(ctx, r.svc.store, r.left, f, nil))
}

// await waits for a call of the store, and takes the time it waits from what is left. It returns false when the call
// fails or is late; the store is not asked again then.
func await[T any](r *reading, c *call[T]) (value T, ok bool) {
	start := r.svc.deps.Now()
	value, err := c.wait()
	r.left -= r.svc.deps.Now().Sub(start)
	switch {
	case errors.Is(err, ErrStale):
		r.stale = true
		r.degrade(degradedStale)
		return value, true
	case err != nil:
		r.broken = true
		r.degrade(degradedStore)
	}
	return value, err == nil
}

// ended says whether there is nothing more to be read, ever.
func (r *reading) ended() bool { return r.next <= r.floor }

// at returns the entry at a position, reading n more from the store if need be. found is false at a hole, when the store is
// broken, and at the floor: the first entry that has expired is it, or the first one looked for of a user who was erased. A hole
// is most often an entry on its way: what a visit a moment ago froze reaches the store within milliseconds. So it is looked for
// again for as long as Config.CatchUpTimeout allows.
func (r *reading) at(ctx context.Context, position int64, n int) (e schemas.FeedEntry, found bool) {
	for {
		if e, found = r.known(ctx, position); found {
			return e, true
		}
		given := r.fetch(ctx, position+1, n)
		if e, found = r.known(ctx, position); found || r.broken || position <= r.floor {
			return e, found
		}
		if given == 0 && (r.erased(ctx) || r.expired(ctx, position)) {
			r.floor = position
			return e, false
		}
		if !r.pause(ctx) {
			return e, false
		}
	}
}

// erased says whether the user is deleted: then the store has let go of the whole feed, its floor included, and nothing is on
// its way. It is asked only where the store has nothing of the user.
func (r *reading) erased(ctx context.Context) bool {
	if len(r.stored) > 0 {
		return false
	}
	me := schemas.ServedItem{Facets: schemas.Facets{Author: r.user}}
	return r.learnGone(ctx, []schemas.ServedItem{me}) && r.facts.isDeleted(r.user)
}

// expired says whether Deps.TTL has taken the entry at a position, below which the store has nothing, and so all that is
// older. It has if the entry was served that long ago. Where nobody remembers it, the store itself tells: it gets the
// entries of a user in their order, so that one below those it has is not on its way. But a store that lacks what is too
// young to have gone, just above, has lost it, or has not got it yet, and the rest like it.
func (r *reading) expired(ctx context.Context, position int64) bool {
	if r.svc.deps.TTL <= 0 {
		return false
	}
	if _, remembered := r.recall(ctx, position); remembered {
		return true // known has taken it for too old
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
	newest, ok := ask(ctx, r, r.read(math.MaxInt64, 1))
	return ok && len(newest.entries) > 0 && newest.entries[0].Position > position
}

// old says whether an entry was served so long ago that the store has let go of it.
func (r *reading) old(e *schemas.FeedEntry) bool {
	ttl := r.svc.deps.TTL
	return ttl > 0 && r.svc.deps.Now().Sub(e.Time.Time()) >= ttl
}

// pause lets a store that lags catch up a little. It returns false when the patience of this answer is used up.
func (r *reading) pause(ctx context.Context) bool {
	const step = 5 * time.Millisecond
	if r.patience < step || r.left < step {
		return false
	}
	r.patience -= step
	r.left -= step
	return pause.For(ctx, step)
}

// fetch reads at most n entries from the store, and returns how many it gave.
func (r *reading) fetch(ctx context.Context, below int64, n int) int {
	rows, ok := ask(ctx, r, r.read(below, n))
	if ok {
		r.absorb(rows)
	}
	return len(rows.entries)
}

func (r *reading) known(ctx context.Context, position int64) (schemas.FeedEntry, bool) {
	if position <= r.floor {
		return schemas.FeedEntry{}, false
	}
	if e, ok := r.stored[position]; ok && !r.broken { // without the store nobody says whether it may be shown
		return e, true
	}
	e, ok := r.recall(ctx, position)
	if ok && !r.broken && r.old(&e) { // remembered here for longer than there: the pages below could not go on
		return schemas.FeedEntry{}, false
	}
	return e, ok
}

// collect returns up to n entries from next downwards, up to a hole, the floor, or the end of what a broken store
// leaves.
func (r *reading) collect(ctx context.Context, n int) (batch []schemas.FeedEntry) {
	if r.next == unknown {
		r.fetch(ctx, math.MaxInt64, n)
	}
	for position := r.next; len(batch) < n && position > r.floor; position-- {
		e, found := r.at(ctx, position, n)
		if !found {
			break
		}
		batch = append(batch, e)
	}
	return batch
}

// fill appends visible frozen items until there are want, the feed ends, or an answer may not read on.
func (r *reading) fill(ctx context.Context, items []Item, want int) []Item {
	for len(items) < want && r.skipped < r.svc.cfg.MaxSkipped && !r.ended() {
		// As much as is missing; where much is hidden, ever more at once.
		n := min(max(want-len(items), r.skipped), maxBatch, r.svc.cfg.MaxSkipped)
		batch := r.collect(ctx, n)
		if len(batch) == 0 {
			if !r.broken && !r.ended() {
				r.degrade(degradedStale)
			}
			break
		}
		if !r.learn(ctx, served(batch)) {
			continue // with what a broken store leaves
		}
		if batch = r.vouched(ctx, batch); len(batch) == 0 {
			break
		}
		items = r.take(items, batch, want)
	}
	return items
}

// vouched returns the newest of the batch that may be shown although the store lags: those the generator remembers, as it
// does. It leaves a batch of a store that does not lag as it is.
func (r *reading) vouched(ctx context.Context, batch []schemas.FeedEntry) []schemas.FeedEntry {
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

// take appends the visible ones of a batch until there are want, and moves on behind the last that it looked at.
func (r *reading) take(items []Item, batch []schemas.FeedEntry, want int) []Item {
	for i := range batch {
		if len(items) == want || r.skipped == r.svc.cfg.MaxSkipped {
			break
		}
		r.next = batch[i].Position - 1
		if item, ok := r.frozen(&batch[i].ServedItem); ok {
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

// prepare learns at once what the first look at the chunk's items and at the frozen ones below needs.
func (r *reading) prepare(ctx context.Context, chunk []schemas.ServedItem, limit int) {
	below := served(r.collect(ctx, max(limit-len(chunk), 0)))
	r.learn(ctx, slices.Concat(chunk, below))
}

// learn asks the store what is true now of items, where that is not known yet. It returns false when the store breaks
// over it; one that is broken is not asked, and what is known has to do.
func (r *reading) learn(ctx context.Context, items []schemas.ServedItem) bool {
	return r.broken || r.learnCards(ctx, items) && r.learnEdges(ctx, items) && r.learnGone(ctx, items)
}

func (r *reading) learnCards(ctx context.Context, items []schemas.ServedItem) bool {
	pins := r.facts.newPins(items)
	if len(pins) == 0 {
		return true
	}
	cards, ok := ask(ctx, r, func(ctx context.Context) (map[schemas.PinID]schemas.Card, error) {
		return r.svc.deps.Store.Cards(ctx, pins)
	})
	if ok {
		r.facts.addCards(pins, cards)
	}
	return ok
}

// learnEdges comes after learnCards: a pin's facets of now decide which edges matter.
func (r *reading) learnEdges(ctx context.Context, items []schemas.ServedItem) bool {
	if r.user == "" { // nobody in particular: no edge counts
		return true
	}
	others := r.facts.newOthers(items)
	if len(others) == 0 {
		return true
	}
	edges, ok := ask(ctx, r, func(ctx context.Context) ([]schemas.Edge, error) {
		return r.svc.deps.Store.Edges(ctx, r.user, others)
	})
	if ok {
		r.facts.addEdges(others, edges)
	}
	return ok
}

// learnGone comes after learnCards, too: they name the authors. The store is asked only until this process has read who is
// deleted: a store may lag.
func (r *reading) learnGone(ctx context.Context, items []schemas.ServedItem) bool {
	if isComplete(r.svc.deps.Deleted) {
		return true
	}
	authors := r.facts.newAuthors(items)
	if len(authors) == 0 {
		return true
	}
	gone, ok := ask(ctx, r, func(ctx context.Context) (map[schemas.UserID]bool, error) {
		return r.svc.deps.Store.Gone(ctx, authors)
	})
	if ok {
		r.facts.addGone(authors, gone)
	}
	return ok
}

// fresh returns the chunk's items that nothing hides. That an edge justifies them the generator knows better: the
// store may not have the edge yet. Of those that came by no edge the generator does not know whether the pin is deleted: when
// the store lags they are left out, and stay in the frozen feed.
func (r *reading) fresh(chunk []schemas.ServedItem) []Item {
	items := make([]Item, 0, len(chunk))
	for i := range chunk {
		r.onPage[chunk[i].Pin] = true
		if !r.facts.hides(&chunk[i]) && (!r.stale || cameByEdge(&chunk[i])) {
			items = append(items, r.facts.item(&chunk[i], true))
		}
	}
	return items
}

// frozen returns a frozen item as it is to be shown, if it is.
func (r *reading) frozen(it *schemas.ServedItem) (Item, bool) {
	swept := it.Pin == ""
	if swept || r.onPage[it.Pin] || r.facts.hides(it) || !r.broken && !r.facts.justifies(it) {
		return Item{}, false
	}
	r.onPage[it.Pin] = true
	return r.facts.item(it, false), true
}

// page makes the answer: Next is where the reading stopped.
func (r *reading) page(feed string, items []Item) Page {
	p := Page{Items: items, Degraded: r.degraded}
	if !r.ended() {
		next := r.svc.cursors.sealFeed(feedCursor{user: r.user, feed: feed, below: r.next + 1})
		p.Next = &next
	}
	return p.full()
}
