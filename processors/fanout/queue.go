package fanout

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// The queue of an owner holds the walks that wait for their turn, in this order: withdrawals before publications, and the
// best score first. A pin has one entry in each class: a newer version replaces an older one. A class keeps the
// Config.Recents best of its withdrawals and of its publications. A walk below these is dropped and counted as queue_cap.
// Config.Recents better pins of the followee reach the same followers, and a backfill does not deliver the dropped one
// either. About one entry in Config.Recents triggers the trim, so the queue holds at most a few times that number.

// Classes of the queue. Walks that switch a followee to push run after all others.
const (
	queueNew  = 0
	queueBack = 1
)

// queueKinds returns the row prefixes of each class and kind, in the order of the queue.
func queueKinds() (prefixes [][]byte) {
	for _, class := range []byte{queueNew, queueBack} {
		for _, isLive := range []byte{0, 1} {
			prefixes = append(prefixes, []byte{rowQueue, class, isLive})
		}
	}
	return prefixes
}

// queueRow returns the row name of a queued walk.
func queueRow(s *schemas.FanoutStep) []byte {
	row := []byte{rowQueue, queueNew, 0}
	if s.Back {
		row[1] = queueBack
	}
	if !s.Deleted && carries(s.Facets, s.Followee) {
		row[2] = 1
	}
	return append(ranked.AppendScore(row, s.Score), s.Pin...)
}

// enqueue adds a walk to the queue, or merges it into the entry of its pin.
func (g *group) enqueue(tx *rows.Tx, b *book, s *schemas.FanoutStep) error {
	row := queueRow(s)
	was, err := rows.Record(b.Owner, row, g.streams.FanoutLoop)
	if err != nil {
		return err
	}
	if was != nil && s.Back {
		if err := g.endBack(tx); err != nil {
			return err
		}
	}
	if err := rows.PutRecord(b.Owner, row, g.streams.FanoutLoop, mergeWalks(was, s)); err != nil {
		return err
	}
	if ranked.TrimDue(ranked.Hash(tx.Key()), ranked.Hash(s.Pin)+uint64(s.Version), g.cfg.Recents) {
		return g.trimQueue(tx, b)
	}
	return nil
}

// mergeWalks returns the walk that replaces two walks of the same pin. It has the newer version, and goes to inactive
// followers if either walk does. was is nil if there is only one.
func mergeWalks(was, s *schemas.FanoutStep) *schemas.FanoutStep {
	if was == nil {
		return s
	}
	merged := *s
	if was.Version > s.Version {
		merged.DeliveredPin = was.DeliveredPin
	}
	merged.All = was.All || s.All
	return &merged
}

// trimQueue drops the walks over the cap, as many as fit the record. The next trim drops the rest.
func (g *group) trimQueue(tx *rows.Tx, b *book) error {
	for _, prefix := range queueKinds() {
		surplus, err := b.surplus(prefix, g.cfg.Recents)
		if err != nil {
			return err
		}
		for _, row := range surplus {
			if rows, bytes := tx.Room(); rows < trimFreeRows || bytes < trimFreeBytes {
				return nil
			}
			if err := g.dropQueued(tx, b, row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *group) dropQueued(tx *rows.Tx, b *book, row string) error {
	tx.Count(dropQueueCap)
	if row[1] == queueBack {
		if err := g.endBack(tx); err != nil {
			return err
		}
	}
	return b.Delete([]byte(row))
}

// endBack notifies the followee that one of the walks that switch it to push will not run.
func (g *group) endBack(tx *rows.Tx) error {
	followee, _ := followeeOf(tx.Key())
	return g.loop(tx, string(followee), &schemas.FanoutStep{Kind: schemas.DoneStep})
}

// nextTurn starts the first walk of the queue.
func (g *group) nextTurn(tx *rows.Tx, b *book) error {
	var row, value []byte
	err := b.Scan(rows.Scan{Prefix: []byte{rowQueue}, Limit: 1}, func(r, v []byte) bool {
		row, value = append(row, r...), append(value, v...)
		return true
	})
	if err != nil {
		return err
	}
	if b.busy = row != nil; !b.busy {
		return nil
	}
	s, err := g.streams.FanoutLoop.Decode(value)
	if err != nil {
		return fmt.Errorf("read queue of %q: %w", tx.Key(), rows.Unreadable(row, err))
	}
	s.Turn = true
	if err := g.loop(tx, tx.Key(), s); err != nil {
		return err
	}
	return b.Delete(row)
}
