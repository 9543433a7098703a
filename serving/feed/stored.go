package feed

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// at returns the entry at a position. If necessary, it reads n more entries from the store. found is false at a hole, at the
// trim position, and if the store is unavailable. The first expired entry becomes the trim position, and so does the first
// position read for an erased user. A hole is usually an entry in flight: an entry of a recent visit reaches the store within milliseconds.
// Therefore at retries for as long as Config.CatchUpTimeout allows.
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

// erased reports whether the user is deleted. The store has then deleted the whole feed with its trim position, and no entry
// is in flight. It asks the store only if the store has returned no entry of the user.
func (r *reader) erased(ctx context.Context) bool {
	if len(r.stored) > 0 {
		return false
	}
	me := schemas.ServedItem{Facets: schemas.Facets{Author: r.user}}
	return r.learnDeleted(ctx, []schemas.ServedItem{me}) && r.facts.Has(r.user)
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
	if r.patience < step || r.left < step {
		return false
	}
	r.patience -= step
	r.left -= step
	select {
	case <-time.After(step):
		return true
	case <-ctx.Done():
		return false
	}
}
