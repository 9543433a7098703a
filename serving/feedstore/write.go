package feedstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/schemas"
)

// Write stores the batch, whole, and returns when it is on disk. It fails, and stores nothing, when an id holds a zero
// byte or an edge is of an unknown kind: no such record passes the doors of the pipeline.
func (s *Store) Write(ctx context.Context, b Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := writer{batch: s.db.NewBatch()}
	defer w.batch.Close()
	w.all(b, s.trim)
	if w.err != nil {
		return fmt.Errorf("write feed store: %w", w.err)
	}
	if w.batch.Empty() {
		return nil
	}
	if err := w.batch.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("write feed store: %w", err)
	}
	return nil
}

// writer fills a batch. After the first error it does nothing more.
type writer struct {
	batch *pebble.Batch
	value []byte // reused: the batch copies
	err   error
}

func (w *writer) all(b Batch, t trimming) {
	for i := range b.Entries {
		w.entry(&b.Entries[i])
	}
	for i := range b.Edges {
		w.edge(&b.Edges[i])
	}
	for i := range b.Publications {
		w.publication(&b.Publications[i])
	}
	for i := range b.Cards {
		w.card(&b.Cards[i])
	}
	for _, d := range b.Deleted {
		w.ids(string(d.User))
		w.put(goneKey(d.User), appendUp(w.value[:0], int64(d.Time)))
	}
	for user, cut := range t.cuts(b.Entries) {
		w.trim(user, cut)
	}
}

// put offers a value to the register of key.
func (w *writer) put(key, value []byte) {
	w.value = value
	if w.err == nil {
		w.err = w.batch.Merge(key, value, nil)
	}
}

// ids refuses what would run two keys into one another.
func (w *writer) ids(ids ...string) {
	for _, id := range ids {
		if w.err == nil && (id == "" || strings.IndexByte(id, 0) >= 0) {
			w.err = fmt.Errorf("id %q: empty or with a zero byte", id)
		}
	}
}

func (w *writer) entry(e *schemas.FeedEntry) {
	w.ids(string(e.User))
	w.put(entryKey(e.User, e.Position), appendEntry(w.value[:0], e))
}

func (w *writer) edge(e *schemas.Edge) {
	w.ids(string(e.User), string(e.Other))
	register, known := registerByte(e.Kind)
	if !known && w.err == nil {
		w.err = fmt.Errorf("edge of unknown kind %q", e.Kind)
	}
	w.put(edgeKey(e.User, e.Other, register), appendEdge(w.value[:0], e))
}

func (w *writer) card(c *schemas.Card) {
	w.ids(string(c.Pin))
	w.put(cardKey(c.Pin), appendCard(w.value[:0], c))
}

// publication tells the listing of the version and, when the pin is to be listed, makes a place for it. A place is
// never taken away: the newest version of the listing says whether one still counts.
func (w *writer) publication(p *schemas.Publication) {
	w.ids(string(p.Followee), string(p.Pin))
	w.put(listingKey(p.Followee, p.Pin), appendVersion(w.value[:0], &p.PinVersion))
	if listed(p.Followee, &p.PinVersion) {
		w.put(placeKey(p.Followee, place{p.Created, p.Pin}), nil)
	}
}

// listed says whether a version belongs in the list of followee.
func listed(followee schemas.Followee, p *schemas.PinVersion) bool {
	return !p.Deleted && (string(p.Author) == string(followee) || string(p.Board) == string(followee) ||
		slices.Contains(p.Interests, schemas.InterestID(followee)))
}

// trim raises the floor of user and deletes the cut with one range.
func (w *writer) trim(user schemas.UserID, c cut) {
	w.put(floorKey(user), appendUp(w.value[:0], c.floor))
	if w.err == nil {
		w.err = w.batch.DeleteRange(entryKey(user, c.floor), entryKey(user, c.end), nil)
	}
}

// trimming decides by positions alone when a feed is trimmed and how far, so that the order of arrival does not matter
// and nothing is read.
type trimming struct{ keep, step int64 }

func newTrimming(maxFeed int) trimming {
	return trimming{keep: int64(maxFeed), step: int64(maxFeed) / 10}
}

// cut is what is trimmed of a feed: the positions from floor down to, and without, end. It reaches down as far as a
// whole feed, and not to the first position: ranges that all overlap cost the square of their number until they are
// compacted. What arrives below the floor later, because an old part of the log is read again, is hidden by the floor,
// and goes with the cuts that this part brings about again.
type cut struct{ floor, end int64 }

// cuts returns what the entries of each user bring about; nothing for most.
func (t trimming) cuts(entries []schemas.FeedEntry) map[schemas.UserID]cut {
	var cuts map[schemas.UserID]cut
	for i := range entries {
		e := &entries[i]
		if e.Position%t.step != 0 || e.Position <= t.keep {
			continue
		}
		if cuts == nil {
			cuts = map[schemas.UserID]cut{}
		}
		floor := e.Position - t.keep
		c := cut{floor: floor, end: floor - t.keep}
		if old, ok := cuts[e.User]; ok {
			c = cut{floor: max(c.floor, old.floor), end: min(c.end, old.end)}
		}
		cuts[e.User] = c
	}
	return cuts
}
