package pools

import (
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Telling. Whoever goes away or comes back, and whose pools are made anew, has all followees told, of whom there may be more
// than a record may write to: what is left goes on with a record of the topic rebuilds, behind the followee told last.
// A newer word to the followees ends an older one.

// toldAtOnce is how many followees are told in one step at most.
const toldAtOnce = 5000

// tell sends what r says to the user's followees of its source behind its place, as many as the record has room for, and has
// the others told in steps. It returns how many answers are to come as far as is known: the rest counts as one.
func (g *group) tell(tx *rows.Tx, own rows.Owner, r *schemas.Rebuild) (answers int, err error) {
	if tx.Silent() { // the active generation asks; to wait for answers to others' questions could be for ever
		return 0, nil
	}
	list, more, err := followeesBehind(own, r.Source, r.After, toldAtOnce)
	if err != nil {
		return 0, err
	}
	on := *r
	on.Tell, on.Keep = true, true // a build that knows no Tell asks everybody, and a user it works off stays returning until the next absence
	for _, followee := range list {
		if !roomy(tx) {
			more = true
			break
		}
		m := schemas.EdgeMode{Followee: followee, User: r.User, Away: r.Away, Asked: r.Asked}
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

// tellOn tells the next followees.
func (g *group) tellOn(tx *rows.Tx, own rows.Owner, r *schemas.Rebuild) error {
	p, err := presenceOf(own)
	switch {
	case err != nil:
		return err
	case r.Away != p.away, !r.Away && r.Asked != greeted && r.Asked != p.asked:
		return nil // they are told something newer
	}
	answers, err := g.tell(tx, own, r)
	if err != nil || r.Asked != p.asked || !p.returning() {
		return err
	}
	p.want = max(p.want+answers-1, p.came)
	return putPresence(own, p)
}

// followeesBehind returns the next of a user's followees of a source, "" for all, behind one, "" for the first, at most so
// many, and whether there are others.
func followeesBehind(own rows.Owner, source schemas.Source, after schemas.Followee, most int) (list []schemas.Followee, more bool, err error) {
	scan := rows.Scan{Prefix: []byte{rowGraph, regFollow}}
	if after != "" {
		scan.From = append(graphRow(regFollow, schemas.ID(after)), 0) // the first name that can follow it
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
