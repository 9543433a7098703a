package pools

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// presence is when a user was here last: one row. Whoever has not been for AwayAfter is away: the followees are told,
// and deliver nothing new. Whoever comes back has every followee asked for what it has; the answers are counted.
type presence struct {
	last  schemas.Micros // arrival of the last visit, or of the record that began the watch; 0: neither was
	away  bool
	looks schemas.Micros // when a timer looks whether the user is away; 0, or gone by: none does
	asked schemas.Micros // when the user came back last; 0: never was away
	want  int            // answers expected to that …
	came  int            // … and here
}

// returning says whether answers are still to come.
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
	case 0: // as it was written before the timer's time was
	case tail:
		p.looks = schemas.Micros(binary.BigEndian.Uint64(rest))
	default:
		return presence{}, errPresence
	}
	return p, nil
}

// readPresence reads the presence of a user, nil if nothing is known of it.
func readPresence(t table) (*presence, error) {
	value, err := t.Get([]byte{rowPresence})
	if err != nil || value == nil {
		return nil, err
	}
	p, err := parsePresence(value)
	return &p, err
}

// presenceOf is readPresence with the zero value in place of nil.
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

// timerAway is the timer that looks whether a user is away.
const timerAway = "away"

// timer works off a timer.
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

// watch sets a timer that looks whether a present user goes away, unless there is one. There is none of a user who was unknown,
// nor after a time without AwayAfter, when timers fired in vain and visits were not noted: so the time counts from now.
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

// look notices whether a user is away.
func (g *group) look(tx *rows.Tx, own rows.Owner, user schemas.UserID) error {
	if g.cfg.AwayAfter == 0 || g.deleted.Has(user) {
		return nil
	}
	p, err := readPresence(own)
	if err != nil || p == nil || p.away || p.looks > schemas.MicrosOf(tx.Time()) { // a later timer looks
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

// here notes that a user is here, and takes back one who was away: also without AwayAfter, since the followees of whoever
// went away before deliver nothing new until they are asked.
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
	case now.Time().Sub(p.last.Time()) < g.cfg.AwayAfter/100: // near enough: a row a visit is saved
		return nil
	}
	p.last = max(p.last, now)
	return putPresence(own, p)
}

// takeBack asks every followee of a user who was away for a back-fill.
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

// greet notes a live follow: the first begins the watch. entered says that the follow is new and admitted. Its followee is
// told whether the user is away if an earlier word that the user is away may still be under way to it, which nobody would
// take back: of a user who is away or once was, and of a follow that was refused before. A followee that had a row before,
// whose edge has another weight or was followed again, was told with all the others: its answer would be all its recents.
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

// tellMode tells a followee whether to deliver what is new, and has it deliver a backfill if so. No chunk waits for that.
func (g *group) tellMode(tx *rows.Tx, followee schemas.ID, away bool) error {
	m := schemas.EdgeMode{Followee: schemas.Followee(followee), User: schemas.UserID(tx.Key()), Away: away, Asked: greeted}
	return rows.Send(tx, g.streams.EdgeModes, string(followee), &m)
}

// greeted is what the answer to a greeting carries: no return was at that time, so nobody counts it.
const greeted = schemas.NotAwaited

// back takes in that a user is here, though nothing may have been shown.
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

// answered counts a followee's answer to one who came back. Answers to an earlier return are of no interest any more.
func (g *group) answered(own rows.Owner, asked schemas.Micros) error {
	p, err := readPresence(own)
	if err != nil || p == nil || p.asked != asked || !p.returning() {
		return err
	}
	p.came++
	return putPresence(own, p)
}
