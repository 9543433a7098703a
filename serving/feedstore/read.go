package feedstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/schemas"
)

// Every read sees a consistent state of the store. A read notices the end of ctx between rows, not during a disk access.

// Page returns at most n entries of a materialized feed at positions below the given one, newest first, and the trim
// position. The trim position is 0 if nothing was trimmed. math.MaxInt64 reads from the newest entry. No entry is at or
// below the trim position.
//
// Positions are dense. Therefore an entry that is missing at the start, between two entries, or above the trim position has
// not reached this store yet. The caller checks this.
func (s *Store) Page(ctx context.Context, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64, error) {
	snap := s.db.NewSnapshot()
	defer snap.Close()
	trimmed, err := readTrimPosition(snap, user)
	if err != nil {
		return nil, 0, fmt.Errorf("read feed of %s: %w", user, err)
	}
	entries, err := readEntries(ctx, snap, user, trimmed, below, n)
	if err != nil {
		return nil, 0, fmt.Errorf("read feed of %s: %w", user, err)
	}
	return entries, trimmed, nil
}

func readTrimPosition(r pebble.Reader, user schemas.UserID) (trimmed int64, err error) {
	_, err = stored.Read(r, trimPositionKey(user), func(value []byte) error {
		r := packed.NewReader(value)
		trimmed = packed.Ordered[int64](r)
		return r.End()
	})
	return trimmed, err
}

func readEntries(
	ctx context.Context, r pebble.Reader, user schemas.UserID, trimmed, below int64, n int,
) (entries []schemas.FeedEntry, err error) {
	if n <= 0 || below <= trimmed {
		return nil, nil
	}
	from, to := after(entryKey(user, below)), entryKey(user, trimmed)
	err = scan(ctx, r, from, to, func(key, value []byte) (bool, error) {
		e, err := decodeEntry(user, positionOf(key), value)
		if err != nil {
			return false, fmt.Errorf("position %d: %w", positionOf(key), err)
		}
		entries = append(entries, e)
		return len(entries) < n, nil
	})
	return entries, err
}

// Edges returns the known registers of user toward the others, live and dead, in no particular order.
func (s *Store) Edges(ctx context.Context, user schemas.UserID, others []schemas.ID) (edges []schemas.Edge, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix(kindEdge, user, 0), UpperBound: edgesEnd(user)})
	if err != nil {
		return nil, fmt.Errorf("read edges of %s: %w", user, err)
	}
	defer it.Close()
	for _, other := range slices.Compact(slices.Sorted(slices.Values(others))) { // in key order
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if edges, err = appendEdges(edges, it, user, other); err != nil {
			return nil, fmt.Errorf("read edges of %s to %s: %w", user, other, err)
		}
	}
	return edges, nil
}

// appendEdges appends the registers toward other, which are adjacent rows.
func appendEdges(edges []schemas.Edge, it *pebble.Iterator, user schemas.UserID, other schemas.ID) ([]schemas.Edge, error) {
	start := edgesKey(user, other)
	for more := it.SeekGE(start); more && bytes.HasPrefix(it.Key(), start); more = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		e := schemas.Edge{User: user, Other: other, Kind: registerOf(it.Key()[len(start)])}
		if err := decodeEdge(&e, value); err != nil {
			return nil, err
		}
		edges = append(edges, e)
	}
	return edges, it.Error()
}

// Cards returns the current state of the pins that the store knows.
func (s *Store) Cards(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error) {
	cards := make(map[schemas.PinID]schemas.Card, len(pins))
	for _, pin := range pins {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		_, err := stored.Read(s.db, cardKey(pin), func(value []byte) (err error) {
			cards[pin], err = decodeCard(pin, value)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read card %s: %w", pin, err)
		}
	}
	return cards, nil
}

// DeletedUsers returns the deleted users among users.
func (s *Store) DeletedUsers(ctx context.Context, users []schemas.UserID) (map[schemas.UserID]bool, error) {
	deletedUsers := map[schemas.UserID]bool{}
	for _, user := range users {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found, err := stored.Read(s.db, deletedUserKey(user), func([]byte) error { return nil })
		if err != nil {
			return nil, fmt.Errorf("read whether %s is deleted: %w", user, err)
		}
		if found {
			deletedUsers[user] = true
		}
	}
	return deletedUsers, nil
}

// List returns at most n pins of a followee after the place from, most recently created first, ties by pin. "" starts at the
// newest. Each pin has the version that was last published for the followee. next is the place to continue at, or "" at the
// end. A page can be short or even empty and still have a next. A place is "<created in micros>/<pin>" in every store. For
// any other text List returns ErrBadPlace.
func (s *Store) List(
	ctx context.Context, followee schemas.Followee, from string, n int,
) (pins []schemas.PinVersion, next string, err error) {
	start, err := listStart(followee, from)
	if err != nil {
		return nil, "", err
	}
	snap := s.db.NewSnapshot()
	defer snap.Close()
	var last Place
	dead := 0
	err = scan(ctx, snap, start, placesEnd(followee), func(key, _ []byte) (bool, error) {
		if len(pins) == n || dead == MaxDead {
			next = last.String() // only now is it certain that another row follows
			return false, nil
		}
		last = placeOf(followee, key)
		p, ok, err := readListing(snap, followee, last)
		if ok {
			pins = append(pins, p)
		} else {
			dead++
		}
		return true, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("read list of %s: %w", followee, err)
	}
	return pins, next, nil
}

func listStart(followee schemas.Followee, from string) ([]byte, error) {
	if from == "" {
		return prefix(kindPlace, followee, 0), nil
	}
	p, err := ParsePlace(from)
	if err != nil {
		return nil, err
	}
	return after(placeKey(followee, p)), nil
}

// readListing returns the newest version of the pin at a place, and reports whether the place is current for that version.
func readListing(r pebble.Reader, followee schemas.Followee, at Place) (p schemas.PinVersion, ok bool, err error) {
	_, err = stored.Read(r, listingKey(followee, at.Pin), func(value []byte) (err error) {
		p, err = decodeListing(at.Pin, value)
		return err
	})
	if err != nil {
		return p, false, fmt.Errorf("listing of %s: %w", at.Pin, err)
	}
	return p, p.Created == at.Created && Listed(followee, &p), nil
}

// scan calls visit for the rows in [from, to) in order until visit returns false or an error.
func scan(ctx context.Context, r pebble.Reader, from, to []byte, visit func(key, value []byte) (bool, error)) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	defer it.Close()
	for more := it.First(); more; more = it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if goOn, err := visit(it.Key(), value); err != nil || !goOn {
			return err
		}
	}
	return it.Error()
}
