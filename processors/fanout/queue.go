package fanout

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// The queue of a followee holds the waiting walks in this order: withdrawals before publications, and the best score first.
// A pin has one entry in each class: a newer version replaces an older one. A class keeps the
// Config.MaxRecentPublications best of its withdrawals and of its publications. A walk below these is dropped and
// counted as queue_cap. Config.MaxRecentPublications better pins of the followee reach the same followers, and a
// backfill does not deliver the dropped one either. About one entry in Config.MaxRecentPublications triggers the trim.
// Therefore the queue holds at most a few times that number.

// Classes of the queue.
const (
	queueWithdrawals  = 0
	queuePublications = 1
)

// queueRow returns the row name of a queued walk.
func queueRow(followee schemas.Followee, p *schemas.DeliveredPin) []byte {
	class := byte(queuePublications)
	if isWithdrawn(p.Deleted, p.Facets, followee) {
		class = queueWithdrawals
	}
	return append(ranked.AppendScore([]byte{rowQueue, class}, p.BaseScore), p.Pin...)
}

// enqueue adds a walk to the queue, or merges it into the entry of its pin.
func (g *group) enqueue(tx *rows.Tx, o *ownerState, w *schemas.Walk) error {
	followee := schemas.Followee(tx.Key())
	row := queueRow(followee, &w.Pin)
	queued, err := rows.Record(o.Owner, row, g.streams.FanoutLoop)
	if err != nil {
		return err
	}
	if queued != nil {
		w = mergeWalks(queued.Walk, w)
	}
	c := schemas.Continuation{Followee: followee, Walk: w}
	if err := rows.PutRecord(o.Owner, row, g.streams.FanoutLoop, &c); err != nil {
		return err
	}
	if !ranked.TrimDue(ranked.Hash(tx.Key()), ranked.Hash(w.Pin.Pin)+uint64(w.Pin.Version), g.cfg.MaxRecentPublications) {
		return nil
	}
	for _, class := range []byte{queueWithdrawals, queuePublications} {
		_, err := o.trim(tx, []byte{rowQueue, class}, g.cfg.MaxRecentPublications, func(row string) error {
			tx.Count(dropQueueCap)
			return o.Delete([]byte(row))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mergeWalks returns the walk that replaces two walks of the same pin. It has the newer version, and includes inactive
// followers if either walk does.
func mergeWalks(a, b *schemas.Walk) *schemas.Walk {
	merged := *b
	if a.Pin.Version > b.Pin.Version {
		merged.Pin = a.Pin
	}
	merged.All = a.All || b.All
	return &merged
}

// nextWalk starts the first walk of the queue. If the queue is empty, it continues the switch to push.
func (g *group) nextWalk(tx *rows.Tx, o *ownerState) error {
	w, err := g.dequeue(tx, o)
	if err == nil && w == nil && o.pushing {
		w, err = g.nextPush(tx, o)
	}
	if err != nil {
		return err
	}
	if o.walking = w != nil; !o.walking {
		return nil
	}
	o.steps++
	w.Number = int64(o.steps)
	return g.continueLater(tx, schemas.Continuation{Walk: w})
}

// dequeue removes the first walk of the queue. It returns nil if the queue is empty.
func (g *group) dequeue(tx *rows.Tx, o *ownerState) (*schemas.Walk, error) {
	row, err := o.first(rows.Scan{Prefix: []byte{rowQueue}})
	if err != nil || row == nil {
		return nil, err
	}
	c, err := rows.Record(o.Owner, row, g.streams.FanoutLoop)
	if err != nil {
		return nil, err
	}
	if c == nil || c.Walk == nil {
		return nil, fmt.Errorf("read queue of %q: row %q: want a walk", tx.Key(), row)
	}
	return c.Walk, o.Delete(row)
}
