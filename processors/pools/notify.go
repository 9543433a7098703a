package pools

import (
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// timerNotify is the timer that continues a notification.
const timerNotify = "notify"

// notifyFollowees sends an EdgeMode to the followees of n.Source after n.After, as many as fit in the record, and sets a timer
// for the rest. The EdgeMode says whether the user is inactive, and otherwise requests a backfill. A newer notification
// replaces one in progress. The result is the number of expected answers; the rest counts as one.
func (g *group) notifyFollowees(tx *rows.Tx, a *userActivity, n layout.Notification) (expected int) {
	a.Notification = layout.Notification{}
	if !sendsNotifications(tx) {
		return 0
	}
	m := schemas.EdgeMode{User: a.user, Inactive: a.Inactive, BackfillID: a.BackfillID}
	if n.Unawaited {
		m.BackfillID = schemas.NotAwaited
	}
	followees := followeesAfter(a.own, n.Source, n.After)
	for _, m.Followee = range followees {
		if !tx.HasRoom() {
			a.Notification = n
			a.own.SetTimer(tx.Time().Add(time.Millisecond), []byte(timerNotify))
			return expected + 1
		}
		rows.Send(tx, g.streams.EdgeModes, string(m.Followee), &m)
		n.After = m.Followee
		expected++
	}
	return expected
}

// continueNotification continues the notification in progress.
func (g *group) continueNotification(tx *rows.Tx, own rows.Owner) {
	a := activityOf(tx, own)
	if a.After == "" {
		return
	}
	n := a.Notification
	expected := g.notifyFollowees(tx, a, n)
	if !a.Inactive && !n.Unawaited {
		a.Expected += expected - 1
	}
	a.store()
}

// notifyNewFollowee handles a live follow: the first one starts the inactivity timer. entered is true if the follow is new and
// admitted.
//
// It sends the followee the user's mode if an earlier notification "inactive" may still be in flight, because no other record
// would revoke that. This is possible if the user is or ever was inactive, and if the follow was refused before. A followee
// whose edge only changed its weight or time was notified with the others. Another notification would only cause a backfill
// of all its recents.
func (g *group) notifyNewFollowee(tx *rows.Tx, own rows.Owner, e *schemas.Edge, entered bool) {
	a := activityOf(tx, own)
	g.track(tx, a)
	if !entered {
		return
	}
	if !a.Inactive && a.BackfillID == 0 {
		if former := own.Load(rows.Name(layout.KindFormer, e.Other)); len(former) == 0 {
			return
		}
	}
	g.sendMode(tx, e.Other, a.Inactive)
}

// sendMode notifies a followee whether to deliver new pins, and requests a backfill if so. No chunk waits for that backfill.
func (g *group) sendMode(tx *rows.Tx, followee schemas.ID, inactive bool) {
	m := schemas.EdgeMode{
		Followee: schemas.Followee(followee), User: schemas.UserID(tx.Key()), Inactive: inactive, BackfillID: schemas.NotAwaited,
	}
	rows.Send(tx, g.streams.EdgeModes, string(followee), &m)
}

// followeesAfter returns the followees of a source ("": all sources) after a followee ("": from the first), by id.
func followeesAfter(own rows.Owner, source schemas.Source, after schemas.Followee) (list []schemas.Followee) {
	scan := rows.Scan{Prefix: []byte{layout.KindGraph, layout.RegisterFollow}}
	if after != "" {
		scan.From = append(layout.GraphRow(layout.RegisterFollow, schemas.ID(after)), 0) // the smallest name that can follow it
	}
	rows.LoadRows(own, scan, func(row, _ []byte) (bool, error) {
		followee := schemas.Followee(row[len(scan.Prefix):])
		if source == "" || followee.Source() == source {
			list = append(list, followee)
		}
		return true, nil
	})
	return list
}
