package pools

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// presence records when a user was last active, in one row. A user without a visit for AwayAfter is inactive: the followees
// are notified and deliver nothing new. When the user is reactivated, every followee is asked for a backfill, and the answers
// are counted.
type presence struct {
	last  schemas.Micros // arrival of the last visit, or of the record that started the timer; 0: neither happened
	away  bool
	looks schemas.Micros // when the inactivity timer fires; 0 or in the past: none is set
	asked schemas.Micros // time of the last backfill request (reactivation or rebuild), which its answers carry; 0: none
	want  int            // answers expected to that request
	came  int            // answers received
}

// returning reports whether answers are outstanding.
func (p presence) returning() bool { return p.came < p.want }

func appendPresence(b []byte, p presence) []byte {
	away := byte(0)
	if p.away {
		away = 1
	}
	b = binary.BigEndian.AppendUint64(append(b, away), uint64(p.last))
	b = binary.BigEndian.AppendUint64(b, uint64(p.asked))
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.want)), uint64(p.came))
	return binary.BigEndian.AppendUint64(b, uint64(p.looks))
}

var errPresence = errors.New("parse presence: cut short or malformed")

func parsePresence(value []byte) (presence, error) {
	const head, tail = 17, 8
	if len(value) < head || value[0] > 1 {
		return presence{}, errPresence
	}
	p := presence{
		away:  value[0] == 1,
		last:  schemas.Micros(binary.BigEndian.Uint64(value[1:])),
		asked: schemas.Micros(binary.BigEndian.Uint64(value[9:])),
	}
	want, n := binary.Uvarint(value[head:])
	if n <= 0 {
		return presence{}, errPresence
	}
	came, m := binary.Uvarint(value[head+n:])
	if m <= 0 || want > 1<<40 || came > want {
		return presence{}, errPresence
	}
	p.want, p.came = int(want), int(came)
	switch rest := value[head+n+m:]; len(rest) {
	case 0: // written by an earlier release, without looks
	case tail:
		p.looks = schemas.Micros(binary.BigEndian.Uint64(rest))
	default:
		return presence{}, errPresence
	}
	return p, nil
}

// readPresence reads the presence of a user. It returns nil if there is none.
func readPresence(t table) (*presence, error) {
	value, err := t.Get([]byte{rowPresence})
	if err != nil || value == nil {
		return nil, err
	}
	p, err := parsePresence(value)
	return &p, err
}

// presenceOf is like readPresence, but returns the zero value instead of nil.
func presenceOf(own rows.Owner) (*presence, error) {
	p, err := readPresence(own)
	if p == nil {
		p = &presence{}
	}
	return p, err
}

func putPresence(own rows.Owner, p *presence) error {
	return own.Put([]byte{rowPresence}, appendPresence(nil, *p))
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
func (g *group) watch(tx *rows.Tx, own rows.Owner, p *presence) error {
	now := schemas.MicrosOf(tx.Time())
	if g.cfg.AwayAfter == 0 || p.away || p.looks > now {
		return nil
	}
	p.last = max(p.last, now)
	if err := g.lookAgain(own, p); err != nil {
		return err
	}
	return putPresence(own, p)
}

func (g *group) lookAgain(own rows.Owner, p *presence) error {
	at := p.last.Time().Add(g.cfg.AwayAfter)
	p.looks = schemas.MicrosOf(at)
	return own.SetTimer(at, []byte(timerAway))
}

// look handles the inactivity timer: it marks the user as inactive, or sets the timer again if the user was active meanwhile.
func (g *group) look(tx *rows.Tx, own rows.Owner, user schemas.UserID) error {
	if g.cfg.AwayAfter == 0 || g.deleted.Has(user) {
		return nil
	}
	p, err := readPresence(own)
	if err != nil || p == nil || p.away || p.looks > schemas.MicrosOf(tx.Time()) { // a later timer checks
		return err
	}
	if tx.Time().Before(p.last.Time().Add(g.cfg.AwayAfter)) {
		if err := g.lookAgain(own, p); err != nil {
			return err
		}
		return putPresence(own, p)
	}
	p.away, p.looks, p.want, p.came = true, 0, 0, 0
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
	case p.away:
		return g.takeBack(tx, own, user, p)
	case p.looks <= now || g.cfg.AwayAfter == 0:
		return g.watch(tx, own, p)
	case now.Time().Sub(p.last.Time()) < g.cfg.AwayAfter/100: // recent enough: this saves a row per visit
		return nil
	}
	p.last = max(p.last, now)
	return putPresence(own, p)
}

// takeBack reactivates an inactive user: it asks every followee for a backfill.
func (g *group) takeBack(tx *rows.Tx, own rows.Owner, user schemas.UserID, p *presence) (err error) {
	now := schemas.MicrosOf(tx.Time())
	p.away, p.last, p.asked, p.came = false, now, max(now, p.asked+1), 0
	tx.Effect(effectReturned, 1)
	if p.want, err = g.tell(tx, own, &schemas.Rebuild{User: user, Asked: p.asked}); err != nil {
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
	if !p.away && p.asked == 0 {
		former, err := own.Get(rowOf(rowFormer, e.Other))
		if err != nil || len(former) == 0 {
			return err
		}
	}
	return g.tellMode(tx, e.Other, p.away)
}

// tellMode tells a followee whether to deliver new pins, and requests a backfill if so. No chunk waits for that backfill.
func (g *group) tellMode(tx *rows.Tx, followee schemas.ID, away bool) error {
	m := schemas.EdgeMode{Followee: schemas.Followee(followee), User: schemas.UserID(tx.Key()), Away: away, Asked: greeted}
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
	p, err := readPresence(own)
	if err != nil || p == nil || p.asked != asked || !p.returning() {
		return err
	}
	p.came++
	return putPresence(own, p)
}
