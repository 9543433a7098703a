package fanout

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// backfill delivers the recents to one follower, including withdrawn ones: the follower may have received an earlier
// version, over this edge or another. The last delivery carries id, unless it is 0. The recents of a pulled followee
// are not delivered.
func (g *group) backfill(tx *rows.Tx, o *ownerState, e edge, id schemas.Micros) {
	if o.pulled {
		g.deliverTo(tx, nil, e, id)
		return
	}
	g.resumeBackfill(tx, o, &schemas.Backfill{User: e.user, Weight: e.weight, BackfillID: id})
}

// resumeBackfill delivers the next recents to one follower.
func (g *group) resumeBackfill(tx *rows.Tx, o *ownerState, b *schemas.Backfill) {
	if !(b.Weight > 0) {
		tx.Fail(schemas.Bad(fmt.Sprintf("backfill: weight %v: want a positive number", b.Weight)))
		return
	}
	pins, more := o.recentsAfter(b, g.cfg.MaxRecentPublications)
	e := edge{b.User, b.Weight}
	if !more {
		g.deliverTo(tx, pins, e, b.BackfillID)
		return
	}
	g.deliverTo(tx, pins, e, 0)
	g.continueLater(tx, schemas.Continuation{Backfill: b})
}

// backfillBytes bounds the recents that one record delivers to one follower, because the effect of a record is limited; see
// rows.Config.
const backfillBytes = 512 << 10

// recentsAfter returns the next recents of a backfill, among the first limit of each kind, and advances b. The live
// ones come first, best first. The withdrawn ones follow, for a follower that walks have skipped. more reports whether
// others remain.
func (o *ownerState) recentsAfter(b *schemas.Backfill, limit int) (pins []schemas.DeliveredPin, more bool) {
	size, after := 0, string(recentRow(kindOf(b.Withdrawn), b.BaseScore, b.Pin))
	resumed, inWithdrawn := b.Pin != "", b.Withdrawn
	for _, withdrawn := range []bool{false, true} {
		if inWithdrawn && !withdrawn || !withdrawn && !o.published || withdrawn && !o.withdrawn {
			continue
		}
		rows.LoadRows(o.Owner, rows.Scan{Prefix: []byte{kindOf(withdrawn)}, Limit: limit}, func(row, value []byte) (bool, error) {
			if resumed && inWithdrawn == withdrawn && string(row) <= after {
				return true, nil // counts toward the limit, as it did in the previous records
			}
			if more = size > backfillBytes; more {
				return false, nil
			}
			r, err := parseRecent(string(row), string(value))
			pins, size = append(pins, r.DeliveredPin), size+len(row)+len(value)
			b.Withdrawn, b.BaseScore, b.Pin = r.withdrawn, r.BaseScore, r.Pin
			return true, err
		})
		if more {
			return pins, more
		}
	}
	return pins, false
}

// deliverTo delivers pins to one follower. With a nonzero id it sends at least one delivery, because the last one
// carries id.
func (g *group) deliverTo(tx *rows.Tx, pins []schemas.DeliveredPin, e edge, id schemas.Micros) {
	d := schemas.Delivery{Source: schemas.Followee(tx.Key()).Source(), Users: []schemas.UserID{e.user}}
	if e.weight != 1 {
		d.Weights = []float32{e.weight}
	}
	portions := schemas.DeliveryPortions(pins)
	if len(portions) == 0 && id != 0 {
		portions = append(portions, nil)
	}
	for i, portion := range portions {
		if d.Pins = portion; i == len(portions)-1 {
			d.BackfillID = id
		}
		rows.SendTo(tx, g.streams.Deliveries, tx.PartitionOf(string(e.user)), tx.Key(), &d)
	}
}

// Repeated backfills. After an unfollow, the pools may have dropped the hidden candidates, and walks have skipped the
// follower. Therefore every follow needs a backfill. A follower who toggles would make the followee deliver all its recents
// each time. The first follow and maxBackfills more in an interval get an immediate backfill. After these, a timer delivers
// one backfill at the end of the interval if the edge is then live. It delivers the recents of that time, so the pool has the
// same content at the end.

// maxBackfills is the number of immediate backfills per interval.
const maxBackfills = 5

// backfillBudget counts a follower's backfills in the current interval. The zero value has no interval.
type backfillBudget struct {
	start  schemas.Micros // arrival of the follow that started the interval
	n      int
	timing bool // a timer is set for the end of the interval
}

// spend returns the budget after a follow at a time, and reports whether its backfill is immediate.
func (b backfillBudget) spend(now schemas.Micros, interval time.Duration) (backfillBudget, bool) {
	switch {
	case b.timing:
		return b, false
	case b.n == 0 || now >= b.end(interval):
		return backfillBudget{start: now, n: 1}, true
	case b.n < maxBackfills:
		b.n++
		return b, true
	}
	b.timing = true
	return b, false
}

func (b backfillBudget) end(interval time.Duration) schemas.Micros {
	return schemas.MicrosOf(b.start.Time().Add(interval))
}

// Pack implements packed.Row.
func (b *backfillBudget) Pack(p *packed.Packer) {
	p.Version(2)
	p.Flags(&b.timing)
	packed.Int(p, &b.start)
	packed.Int(p, &b.n)
}

// backfillAgain delivers a backfill to a follower who followed before: immediately, or by the timer.
func (g *group) backfillAgain(tx *rows.Tx, o *ownerState, e edge) {
	row := rows.Name(rowBudget, e.user)
	before, _ := rows.Load[backfillBudget](o.Owner, row)
	after, immediate := before.spend(schemas.MicrosOf(tx.Time()), g.cfg.BackfillInterval)
	if after != before {
		rows.PutValue(o.Owner, row, &after)
	}
	if immediate {
		g.backfill(tx, o, e, 0)
		return
	}
	tx.Effect(effectDeferred, 1)
	if !before.timing {
		o.SetTimer(after.end(g.cfg.BackfillInterval).Time(), row)
	}
}

// deferredBackfill delivers the backfill of a follower whose timer fired, unless the user no longer follows.
func (g *group) deferredBackfill(tx *rows.Tx, own rows.Owner, user schemas.UserID) {
	own.Delete(rows.Name(rowBudget, user))
	if registerOf(own, rowFollow, user).live {
		withState(tx, func(o *ownerState) { g.backfillAgain(tx, o, o.edgeOf(user)) })
	}
}

// dropBudgetTimer removes the timer of a deferred backfill, if there is one. The timer's name is the name of the row.
func (g *group) dropBudgetTimer(own rows.Owner, row []byte) {
	b, _ := rows.Load[backfillBudget](own, row)
	if b.timing {
		own.DropTimer(b.end(g.cfg.BackfillInterval).Time(), row)
	}
}
