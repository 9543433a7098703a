package fanout

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

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
	row := rowOf(rowBudget, e.user)
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
	if before.timing {
		return
	}
	o.SetTimer(after.end(g.cfg.BackfillInterval).Time(), row)
}

// deferredBackfill delivers the backfill of a follower whose timer fired, unless the user no longer follows.
func (g *group) deferredBackfill(tx *rows.Tx, own rows.Owner, user schemas.UserID) {
	own.Delete(rowOf(rowBudget, user))
	r := registerOf(own, rowFollow, user)
	if !r.live {
		return
	}
	withState(tx, func(o *ownerState) { g.backfillAgain(tx, o, o.edgeOf(user)) })
}

// dropBudgetTimer removes the timer of a deferred backfill, if there is one. The timer's name is the name of the row.
func (g *group) dropBudgetTimer(own rows.Owner, row []byte) {
	b, _ := rows.Load[backfillBudget](own, row)
	if !b.timing {
		return
	}
	own.DropTimer(b.end(g.cfg.BackfillInterval).Time(), row)
}
