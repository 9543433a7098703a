package layout

import (
	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// Activity is one row per user: when the user was last seen, and the number of answers to the last backfill request.
// See package pools for the states.
type Activity struct {
	LastSeen   schemas.Micros // arrival of the last visit, or of the record that started the tracking; 0: neither happened
	Inactive   bool
	CheckAt    schemas.Micros // when the inactivity timer fires; 0 or in the past: none is set
	BackfillID schemas.Micros // time of the last backfill request (reactivation or rebuild), which its answers carry; 0: none
	Expected   int            // answers expected to that request
	Received   int            // answers received

	Notification // in progress
}

// Notification is a notification of followees that did not fit in one record. A timer continues it. It counts as one more
// expected answer, if answers are awaited. The zero value is none.
type Notification struct {
	After     schemas.Followee // the followee that was notified last; "": no notification is in progress
	Source    schemas.Source   // only followees of this source are notified; "": all
	Unawaited bool             // no chunk waits for the requested backfills
}

// Pack implements packed.Row.
func (a *Activity) Pack(p *packed.Packer) {
	p.Version(2)
	p.Flags(&a.Inactive, &a.Unawaited)
	packed.Int(p, &a.LastSeen)
	packed.Int(p, &a.CheckAt)
	packed.Int(p, &a.BackfillID)
	packed.Int(p, &a.Expected)
	packed.Int(p, &a.Received)
	packed.String(p, &a.After)
	packed.String(p, &a.Source)
}

// IsBackfilling reports whether answers are outstanding.
func (a *Activity) IsBackfilling() bool { return a.Received < a.Expected }
