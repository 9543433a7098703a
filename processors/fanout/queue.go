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
func (g *group) enqueue(tx *rows.Tx, o *ownerState, w *schemas.Walk) {
	followee := schemas.Followee(tx.Key())
	row := queueRow(followee, &w.Pin)
	queued := rows.Record(o.Owner, row, g.streams.FanoutLoop)
	if queued != nil {
		w = mergeWalks(queued.Walk, w)
	}
	rows.PutRecord(o.Owner, row, g.streams.FanoutLoop, &schemas.Continuation{Followee: followee, Walk: w})
	if !ranked.TrimDue(ranked.Hash(tx.Key()), ranked.Hash(w.Pin.Pin)+uint64(w.Pin.Version), g.cfg.MaxRecentPublications) {
		return
	}
	for _, class := range []byte{queueWithdrawals, queuePublications} {
		o.trim(tx, []byte{rowQueue, class}, g.cfg.MaxRecentPublications, func(row string) {
			tx.Count(dropQueueCap)
			o.Delete([]byte(row))
		})
	}
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
func (g *group) nextWalk(tx *rows.Tx, o *ownerState) {
	w := g.dequeue(tx, o)
	if w == nil && o.pushing {
		w = g.nextPush(tx, o)
	}
	if o.walking = w != nil; !o.walking {
		return
	}
	o.steps++
	w.Number = int64(o.steps)
	g.continueLater(tx, schemas.Continuation{Walk: w})
}

// dequeue removes the first walk of the queue. It returns nil if the queue is empty.
func (g *group) dequeue(tx *rows.Tx, o *ownerState) *schemas.Walk {
	row := o.first(rows.Scan{Prefix: []byte{rowQueue}})
	if row == nil {
		return nil
	}
	c := rows.Record(o.Owner, row, g.streams.FanoutLoop)
	if c == nil || c.Walk == nil {
		tx.Fail(fmt.Errorf("read queue of %q: row %q: want a walk", tx.Key(), row))
		return nil
	}
	o.Delete(row)
	return c.Walk
}
