package pools

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Sweeping. What is deleted, or of an author who is gone, is hidden at once, and would stay where nothing more comes that has
// the pool trimmed. So what says that something is deleted sets a timer of the user's, a day later at least, which trims all
// pools and drops what is deleted for good. Nobody says it of what came by a follow that has ended, or from a followee whose
// pins are pulled. It fires at a time of the day that is the user's own: what is deleted within a day
// sets the same timer, nothing need be read for it, and the users of a popular pin are not swept all at once.

// sweepAfter is how long what is deleted stays at least, from the time of the event that deleted it, twice as long at most from
// its arrival. Versions that came before over other edges, and were slower, find the deletion there. Of events that come days
// late they may not: such a pin is then a candidate, which no page shows, until the deletion has come over that edge, too.
const sweepAfter = 24 * time.Hour

// timerSweep is the timer that sweeps a user's pools.
const timerSweep = "sweep"

// sweepsNone is as a bound of versions below all.
const sweepsNone schemas.Version = math.MinInt64

// sweepAt is when a user's pools are swept of what is deleted now.
func sweepAt(user schemas.UserID, now time.Time) time.Time {
	phase := time.Duration(ranked.Hash(user)%uint64(sweepAfter/time.Second)) * time.Second
	return now.Add(2*sweepAfter - phase).Truncate(sweepAfter).Add(phase)
}

// sweepLater has the pools of a user swept.
func sweepLater(tx *rows.Tx, user schemas.UserID) error {
	return tx.Of(string(user)).SetTimer(sweepAt(user, tx.Time()), []byte(timerSweep))
}

// dropSweeps takes the timers back that may stand.
func dropSweeps(tx *rows.Tx, own rows.Owner, user schemas.UserID) error {
	last := sweepAt(user, tx.Time())
	if err := own.DropTimer(last.Add(-sweepAfter), []byte(timerSweep)); err != nil {
		return err
	}
	return own.DropTimer(last, []byte(timerSweep))
}

// sweepDelivered has the users of a delivery swept that brings them what is deleted, or of an author who is gone.
func (g *group) sweepDelivered(tx *rows.Tx, d *schemas.Delivery) error {
	final := false
	for i := range d.Pins {
		final = final || d.Pins[i].Deleted || g.deleted.Has(d.Pins[i].Author)
	}
	if !final {
		return nil
	}
	for _, user := range d.Users {
		if err := sweepLater(tx, user); err != nil {
			return err
		}
	}
	return nil
}

// sweepPools drops what is deleted for good from all of a user's pools.
func (g *group) sweepPools(tx *rows.Tx, own rows.Owner, user schemas.UserID) error {
	if g.deleted.Has(user) {
		return nil
	}
	// A version may be some minutes ahead of its arrival, see schemas.MaxAhead: the timer that it sets finds it.
	below := schemas.Version(schemas.MicrosOf(tx.Time().Add(2*schemas.MaxAhead - sweepAfter)))
	more, err := g.trimAll(tx, own, user, below)
	if err != nil || !more {
		return err
	}
	return own.SetTimer(tx.Time().Add(time.Millisecond), []byte(timerSweep)) // another than the one that has just fired
}
