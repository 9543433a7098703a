package pools

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// presenceOf is like readPresence, but returns the zero value instead of nil.
func presenceOf(own rows.Owner) (*layout.Activity, error) {
	p, err := layout.ReadActivity(own)
	if p == nil {
		p = &layout.Activity{}
	}
	return p, err
}

func putPresence(own rows.Owner, p *layout.Activity) error {
	return own.Put([]byte{layout.KindActivity}, layout.AppendActivity(nil, *p))
}

// timerAway is the timer that checks whether a user is inactive.
const timerAway = "away"

// timer handles a timer.
func (g *group) timer(tx *rows.Tx, own rows.Owner, name []byte, at time.Time) error {
	floorsOf(tx).forget(schemas.UserID(tx.Key()))
	switch user := schemas.UserID(tx.Key()); string(name) {
	case timerErase:
		return g.eraseOn(tx, own, at)
	case timerSweep:
		return g.sweepPools(tx, own, user)
	case timerAway:
		return g.look(tx, own, user)
	case timerFollows:
		return g.balanceFollows(tx, own)
	}
	return schemas.Bad(fmt.Sprintf("unknown timer %q", name))
}

// watch sets the inactivity timer of an active user unless it is set. It is not set for a new user, nor after a period with
// AwayAfter 0. In such a period timers have no effect and visits are not recorded, so the time counts from now.
func (g *group) watch(tx *rows.Tx, own rows.Owner, p *layout.Activity) error {
	now := schemas.MicrosOf(tx.Time())
	if g.cfg.AwayAfter == 0 || p.Inactive || p.CheckAt > now {
		return nil
	}
	p.LastSeen = max(p.LastSeen, now)
	if err := g.lookAgain(own, p); err != nil {
		return err
	}
	return putPresence(own, p)
}

func (g *group) lookAgain(own rows.Owner, p *layout.Activity) error {
	at := p.LastSeen.Time().Add(g.cfg.AwayAfter)
	p.CheckAt = schemas.MicrosOf(at)
	return own.SetTimer(at, []byte(timerAway))
}

// look handles the inactivity timer: it marks the user as inactive, or sets the timer again if the user was active meanwhile.
func (g *group) look(tx *rows.Tx, own rows.Owner, user schemas.UserID) error {
	if g.cfg.AwayAfter == 0 || g.deleted.Has(user) {
		return nil
	}
	p, err := layout.ReadActivity(own)
	if err != nil || p == nil || p.Inactive || p.CheckAt > schemas.MicrosOf(tx.Time()) { // a later timer checks
		return err
	}
	if tx.Time().Before(p.LastSeen.Time().Add(g.cfg.AwayAfter)) {
		if err := g.lookAgain(own, p); err != nil {
			return err
		}
		return putPresence(own, p)
	}
	p.Inactive, p.CheckAt, p.Expected, p.Received = true, 0, 0, 0
	tx.Effect(effectAway, 1)
	if _, err := g.tell(tx, own, &schemas.Rebuild{User: user, Away: true}); err != nil {
		return err
	}
	return putPresence(own, p)
}

// here records a visit and reactivates an inactive user. It does so also with AwayAfter 0, because the followees of a user
// who was already inactive deliver nothing new until they are asked.
func (g *group) here(tx *rows.Tx, own rows.Owner, user schemas.UserID) error {
	p, err := presenceOf(own)
	if err != nil {
		return err
	}
	now := schemas.MicrosOf(tx.Time())
	switch {
	case p.Inactive:
		return g.takeBack(tx, own, user, p)
	case p.CheckAt <= now || g.cfg.AwayAfter == 0:
		return g.watch(tx, own, p)
	case now.Time().Sub(p.LastSeen.Time()) < g.cfg.AwayAfter/100: // recent enough: this saves a row per visit
		return nil
	}
	p.LastSeen = max(p.LastSeen, now)
	return putPresence(own, p)
}

// takeBack reactivates an inactive user: it asks every followee for a backfill.
func (g *group) takeBack(tx *rows.Tx, own rows.Owner, user schemas.UserID, p *layout.Activity) (err error) {
	now := schemas.MicrosOf(tx.Time())
	p.Inactive, p.LastSeen, p.BackfillID, p.Received = false, now, max(now, p.BackfillID+1), 0
	tx.Effect(effectReturned, 1)
	if p.Expected, err = g.tell(tx, own, &schemas.Rebuild{User: user, Asked: p.BackfillID}); err != nil {
		return err
	}
	if g.cfg.AwayAfter > 0 {
		if err := g.lookAgain(own, p); err != nil {
			return err
		}
	}
	return putPresence(own, p)
}

// greet handles a live follow: the first one starts the inactivity timer. entered says that the follow is new and admitted.
//
// greet sends the followee the user's mode if an earlier notification "inactive" may still be in flight to it, because
// nothing else would revoke that. This is possible if the user is or ever was inactive, and if the follow was refused before.
// A followee whose edge existed before, and now has another weight or time, was notified together with all others. Another
// notification would only cause a backfill of all its recents.
func (g *group) greet(tx *rows.Tx, own rows.Owner, e *schemas.Edge, entered bool) error {
	p, err := presenceOf(own)
	if err != nil {
		return err
	}
	if err := g.watch(tx, own, p); err != nil || !entered {
		return err
	}
	if !p.Inactive && p.BackfillID == 0 {
		former, err := own.Get(layout.RowName(layout.KindFormer, e.Other))
		if err != nil || len(former) == 0 {
			return err
		}
	}
	return g.tellMode(tx, e.Other, p.Inactive)
}

// tellMode tells a followee whether to deliver new pins, and requests a backfill if so. No chunk waits for that backfill.
func (g *group) tellMode(tx *rows.Tx, followee schemas.ID, away bool) error {
	m := schemas.EdgeMode{Followee: schemas.Followee(followee), User: schemas.UserID(tx.Key()), Inactive: away, BackfillID: greeted}
	return rows.Send(tx, g.streams.EdgeModes, string(followee), &m)
}

// greeted is the Asked value of a notification by tellMode. No reactivation has this time, so the answer is not counted.
const greeted = schemas.NotAwaited

// back records that a user is active, even if the visit showed nothing.
func (g *group) back(tx *rows.Tx, r *schemas.Return) error {
	if tx.Key() != string(r.User) {
		return schemas.Bad(fmt.Sprintf("return: key %q is not the user %q", tx.Key(), r.User))
	}
	if g.deleted.Has(r.User) {
		tx.Count(dropDeletedUser)
		return nil
	}
	return g.here(tx, tx.Own(), r.User)
}

// answered counts a followee's answer to a request for backfills. It ignores answers to earlier requests.
func (g *group) answered(own rows.Owner, asked schemas.Micros) error {
	p, err := layout.ReadActivity(own)
	if err != nil || p == nil || p.BackfillID != asked || !p.IsBackfilling() {
		return err
	}
	p.Received++
	return putPresence(own, p)
}
