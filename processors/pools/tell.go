package pools

import (
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// When a user becomes inactive or is reactivated, and when pools are rebuilt, the followees are notified. One record may not
// be able to notify all of them. Then a record on the topic rebuilds continues after the last notified followee. A newer
// notification replaces an older one that has not finished.

// toldAtOnce is the maximum number of followees that one step notifies.
const toldAtOnce = 5000

// tell notifies the user's followees of r.Source after r.After, as many as fit into the record, and sends a continuation for
// the rest. It returns the number of expected answers; the continuation counts as one.
func (g *group) tell(tx *rows.Tx, own rows.Owner, r *schemas.Rebuild) (answers int, err error) {
	if tx.Silent() { // the active generation sends the notifications; a silent one could wait forever for answers
		return 0, nil
	}
	list, more, err := followeesBehind(own, r.Source, r.After, toldAtOnce)
	if err != nil {
		return 0, err
	}
	on := *r
	// A release without Tell processes the continuation as a rebuild: Keep stops it from deleting candidates. It asks all
	// followees, and the user stays "returning" until the next period of inactivity.
	on.Tell, on.Keep = true, true
	for _, followee := range list {
		if !roomy(tx) {
			more = true
			break
		}
		m := schemas.EdgeMode{Followee: followee, User: r.User, Inactive: r.Away, BackfillID: r.Asked}
		if err := rows.Send(tx, g.streams.EdgeModes, string(followee), &m); err != nil {
			return 0, err
		}
		on.After = followee
		answers++
	}
	if !more {
		return answers, nil
	}
	return answers + 1, rows.Send(tx, g.streams.Rebuilds, tx.Key(), &on)
}

// tellOn continues a notification.
func (g *group) tellOn(tx *rows.Tx, own rows.Owner, r *schemas.Rebuild) error {
	p, err := presenceOf(own)
	switch {
	case err != nil:
		return err
	case r.Away != p.Inactive, !r.Away && r.Asked != greeted && r.Asked != p.BackfillID:
		return nil // a newer notification replaces this one
	}
	answers, err := g.tell(tx, own, r)
	if err != nil || r.Asked != p.BackfillID || !p.IsBackfilling() {
		return err
	}
	p.Expected = max(p.Expected+answers-1, p.Received)
	return putPresence(own, p)
}

// followeesBehind returns at most most followees of a source ("": all sources) that follow after ("": from the first), and
// reports whether there are more.
func followeesBehind(own rows.Owner, source schemas.Source, after schemas.Followee, most int) (list []schemas.Followee, more bool, err error) {
	scan := rows.Scan{Prefix: []byte{layout.KindGraph, layout.RegisterFollow}}
	if after != "" {
		scan.From = append(layout.GraphRow(layout.RegisterFollow, schemas.ID(after)), 0) // the smallest name that can follow it
	}
	err = own.Scan(scan, func(row, _ []byte) bool {
		followee := schemas.Followee(row[len(scan.Prefix):])
		if source != "" && followee.Source() != source {
			return true
		}
		if more = len(list) == most; !more {
			list = append(list, followee)
		}
		return !more
	})
	return list, more, err
}
