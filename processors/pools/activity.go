package pools

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// userActivity is the activity of the record's user during one record.
type userActivity struct {
	layout.Activity
	own  rows.Owner
	user schemas.UserID
}

// activityOf reads the activity of the record's user, or the zero value if there is none.
func activityOf(tx *rows.Tx, own rows.Owner) *userActivity {
	a, _ := rows.Load[layout.Activity](own, []byte{layout.KindActivity})
	return &userActivity{a, own, schemas.UserID(tx.Key())}
}

// store writes the activity.
func (a *userActivity) store() {
	rows.PutValue(a.own, []byte{layout.KindActivity}, &a.Activity)
}

// timerInactivity is the timer that checks whether a user is inactive.
const timerInactivity = "inactive"

// timer handles a timer.
func (g *group) timer(tx *rows.Tx, own rows.Owner, name []byte, at time.Time) error {
	user := schemas.UserID(tx.Key())
	thresholdsOf(tx).discard(user)
	switch {
	case string(name) == timerErase:
		g.eraseOn(tx, own, at)
	case g.deleted.Has(user):
	case isReportTimer(name):
		showAgain(own, name)
	case string(name) == timerSweep:
		return g.sweepPools(tx, own, user)
	case string(name) == timerInactivity:
		g.checkInactivity(tx, own)
	case string(name) == timerNotify:
		g.continueNotification(tx, own)
	default:
		return schemas.Bad(fmt.Sprintf("timer %q: want a timer of this group", name))
	}
	return nil
}

// track starts the inactivity timer of an active user unless it is set. It is not set for a new user, nor after a period with
// InactiveAfter 0. In such a period timers have no effect and visits are not recorded, so the time counts from now.
func (g *group) track(tx *rows.Tx, a *userActivity) {
	now := schemas.MicrosOf(tx.Time())
	if g.cfg.InactiveAfter == 0 || a.Inactive || a.CheckAt > now {
		return
	}
	a.LastSeen = max(a.LastSeen, now)
	g.scheduleCheck(a)
}

// scheduleCheck sets the inactivity timer and stores the activity.
func (g *group) scheduleCheck(a *userActivity) {
	at := a.LastSeen.Time().Add(g.cfg.InactiveAfter)
	a.CheckAt = schemas.MicrosOf(at)
	a.own.SetTimer(at, []byte(timerInactivity))
	a.store()
}

// checkInactivity handles the inactivity timer. It deactivates the user, or sets the timer again if the user was seen in the
// meantime.
func (g *group) checkInactivity(tx *rows.Tx, own rows.Owner) {
	a := activityOf(tx, own)
	now := schemas.MicrosOf(tx.Time())
	if g.cfg.InactiveAfter == 0 || a.CheckAt == 0 || a.Inactive || a.CheckAt > now { // a later timer checks
		return
	}
	if tx.Time().Before(a.LastSeen.Time().Add(g.cfg.InactiveAfter)) {
		g.scheduleCheck(a)
		return
	}
	a.Inactive, a.CheckAt, a.Expected, a.Received = true, 0, 0, 0
	tx.Effect(effectDeactivated, 1)
	g.notifyFollowees(tx, a, layout.Notification{})
	a.store()
}

// recordVisit records a visit and reactivates an inactive user, also with InactiveAfter 0: the followees of a user who was
// already inactive deliver nothing new without a backfill request.
func (g *group) recordVisit(tx *rows.Tx, own rows.Owner) {
	a := activityOf(tx, own)
	now := schemas.MicrosOf(tx.Time())
	switch {
	case a.Inactive:
		g.reactivate(tx, a)
		return
	case a.CheckAt <= now || g.cfg.InactiveAfter == 0:
		g.track(tx, a)
		return
	case now.Time().Sub(a.LastSeen.Time()) < g.cfg.InactiveAfter/100: // recent enough: this saves a row per visit
		return
	}
	a.LastSeen = max(a.LastSeen, now)
	a.store()
}

// reactivate reactivates an inactive user: it requests a backfill from every followee.
func (g *group) reactivate(tx *rows.Tx, a *userActivity) {
	a.Inactive, a.LastSeen = false, schemas.MicrosOf(tx.Time())
	tx.Effect(effectReactivated, 1)
	g.requestBackfills(tx, a, "")
	if g.cfg.InactiveAfter == 0 {
		a.store()
		return
	}
	g.scheduleCheck(a)
}

// requestBackfills requests backfills from the followees of a source ("": all). Chunks wait for them. Answers to an earlier
// request are no longer counted.
func (g *group) requestBackfills(tx *rows.Tx, a *userActivity, source schemas.Source) {
	a.BackfillID, a.Received = max(schemas.MicrosOf(tx.Time()), a.BackfillID+1), 0
	a.Expected = g.notifyFollowees(tx, a, layout.Notification{Source: source})
}

// countBackfill counts a followee's answer to a backfill request. It ignores answers to earlier requests.
func (g *group) countBackfill(own rows.Owner, id schemas.Micros) {
	a, found := rows.Load[layout.Activity](own, []byte{layout.KindActivity})
	if !found || a.BackfillID != id || !a.IsBackfilling() {
		return
	}
	a.Received++
	rows.PutValue(own, []byte{layout.KindActivity}, &a)
}

// userActive records that a user is active, even if the visit showed nothing.
func (g *group) userActive(tx *rows.Tx, _ *schemas.UserActivity) error {
	g.recordVisit(tx, tx.Own())
	return nil
}
