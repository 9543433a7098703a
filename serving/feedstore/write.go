package feedstore

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// Write stores the batch and returns when it is on disk. If an id is empty or contains a zero byte, or an edge is of
// an unknown kind, Write returns an error and stores nothing. The pipeline rejects such records before they get here.
func (s *Store) Write(ctx context.Context, b Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := Check(b); err != nil {
		return fmt.Errorf("write feed store: %w", err)
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

// writer fills a batch. After the first error it does nothing.
type writer struct {
	batch *pebble.Batch
	value []byte // reused, because the batch copies it
	err   error
}

func (w *writer) all(b Batch, t Trimming) {
	each(b.Entries, w.entry)
	each(b.Edges, w.edge)
	each(b.Publications, w.publication)
	each(b.Cards, w.card)
	for _, d := range b.Deleted {
		w.put(deletedUserKey(d.User), packed.AppendOrdered(w.value[:0], d.Time))
	}
	for user, cut := range t.Cuts(b.Entries) {
		w.trim(user, cut)
	}
	for _, d := range b.Erased {
		w.erase(d.User)
	}
}

// put merges a value into the register of key.
func (w *writer) put(key, value []byte) {
	w.value = value
	if w.err == nil {
		w.err = w.batch.Merge(key, value, nil)
	}
}

func (w *writer) entry(e *schemas.FeedEntry) {
	w.put(entryKey(e.User, e.Position), appendEntry(w.value[:0], e))
}

func (w *writer) edge(e *schemas.Edge) {
	register, _ := registerByte(e.Kind)
	if e.Erased {
		w.delete(edgeKey(e.User, e.Other, register))
		return
	}
	w.put(edgeKey(e.User, e.Other, register), appendEdge(w.value[:0], e))
}

func (w *writer) card(c *schemas.Card) {
	w.put(cardKey(c.Pin), appendCard(w.value[:0], c))
}

// publication writes the version to the listing and, if the pin is listed, its place. It never deletes a place: the newest
// version in the listing determines whether a place is current.
func (w *writer) publication(p *schemas.Publication) {
	w.put(listingKey(p.Followee, p.Pin), appendVersion(w.value[:0], &p.PinVersion))
	if Listed(p.Followee, &p.PinVersion) {
		w.put(placeKey(p.Followee, Place{p.Created, p.Pin}), nil)
	}
}

// trim raises the trim position of user and deletes the cut with one range. The range covers the length of one feed and does
// not reach down to the first position: if all ranges overlap, their cost until compaction is quadratic in their number.
func (w *writer) trim(user schemas.UserID, c Cut) {
	w.put(trimPositionKey(user), packed.AppendOrdered(w.value[:0], c.Position))
	if w.err == nil {
		w.err = w.batch.DeleteRange(entryKey(user, c.Position), entryKey(user, c.end), nil)
	}
}

// delete deletes one row.
func (w *writer) delete(key []byte) {
	if w.err == nil {
		w.err = w.batch.Delete(key, nil)
	}
}

// erase deletes all rows of a user.
func (w *writer) erase(user schemas.UserID) {
	w.delete(trimPositionKey(user))
	for _, kind := range []byte{kindEntry, kindEdge, kindPlace, kindListing} {
		if w.err == nil {
			w.err = w.batch.DeleteRange(prefix(kind, user, 0), append(key(kind, user), 1), nil)
		}
	}
}
