package pools

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Sweep. A deleted candidate, or one of a deleted author, is hidden immediately. Its row would stay if no other record caused a
// trim of the pool. Therefore a record that reports a deletion sets a timer of the user. The timer fires at least a day later,
// trims all pools and drops the deleted candidates. No record reports deletions of candidates whose follow has ended or whose
// followee is pulled.
//
// The timer fires at a time of day that depends on the user. Therefore the deletions of one day set the same timer without a
// read, and the users of a popular pin are swept at different times.

// sweepAfter is the minimum time that a deleted candidate keeps its row, from the time of the deletion event. The maximum is
// twice as long, from the arrival. Slower deliveries of earlier versions over other edges find the deletion there. If the
// deletion event arrives days late, they may not find it. The pin is then a candidate, which no page shows, until the
// deletion arrives over that edge.
const sweepAfter = 24 * time.Hour

// timerSweep is the timer that sweeps a user's pools.
const timerSweep = "sweep"

// sweepsNone is a bound below all versions.
const sweepsNone schemas.Version = math.MinInt64

// sweepAt returns when a user's pools are swept if something is deleted now.
func sweepAt(user schemas.UserID, now time.Time) time.Time {
	phase := time.Duration(ranked.Hash(user)%uint64(sweepAfter/time.Second)) * time.Second
	return now.Add(2*sweepAfter - phase).Truncate(sweepAfter).Add(phase)
}

// sweepLater sets the timer that sweeps the pools of a user.
func sweepLater(tx *rows.Tx, user schemas.UserID) {
	tx.Of(string(user)).SetTimer(sweepAt(user, tx.Time()), []byte(timerSweep))
}

// dropSweeps removes the sweep timers that may be set.
func dropSweeps(tx *rows.Tx, own rows.Owner, user schemas.UserID) {
	last := sweepAt(user, tx.Time())
	own.DropTimer(last.Add(-sweepAfter), []byte(timerSweep))
	own.DropTimer(last, []byte(timerSweep))
}

// sweepDelivered sets the sweep timers of the users of a delivery that contains a deletion or a pin of a deleted author.
func (g *group) sweepDelivered(tx *rows.Tx, d *schemas.Delivery) {
	final := false
	for i := range d.Pins {
		final = final || d.Pins[i].Deleted || g.deleted.Has(d.Pins[i].Author)
	}
	if !final {
		return
	}
	for _, user := range d.Users {
		sweepLater(tx, user)
	}
}

// sweepPools drops the deleted candidates from all pools of a user.
func (g *group) sweepPools(tx *rows.Tx, own rows.Owner, user schemas.UserID) error {
	// A version may be minutes ahead of its arrival, see schemas.MaxAhead. The bound lets the timer that it sets find it.
	below := schemas.Version(schemas.MicrosOf(tx.Time().Add(2*schemas.MaxAhead - sweepAfter)))
	more, err := g.trimAll(tx, own, user, below)
	if err != nil || !more {
		return err
	}
	own.SetTimer(tx.Time().Add(time.Millisecond), []byte(timerSweep)) // a later time than that of the timer that just fired
	return nil
}
