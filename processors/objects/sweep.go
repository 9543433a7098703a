package objects

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// sweep is the next deletion of the expired rows of a pin. A pin has one timer for all its remembered actions and counts: a timer
// for each would be half of the rows that an action writes.
type sweep struct {
	due  schemas.Micros // when the timer fires; 0: there is none
	from string         // name of the row to continue with; "": the first
}

// Pack implements packed.Row.
func (s *sweep) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Int(p, &s.due)
	packed.String(p, &s.from)
}

// maxSwept bounds the rows that one timer visits.
const maxSwept = 500

// sweepInterval is the minimum time between two sweeps of a pin. A row stays for at most this long after it has expired.
func (c Config) sweepInterval() time.Duration { return min(c.DedupWindow, c.CountRetention) / 8 }

// sweepAt makes sure that a row is deleted soon after it has expired.
func (t table) sweepAt(expiry time.Time) {
	s, _ := rows.Load[sweep](t.own, []byte{sweepRow})
	switch {
	case s.due == 0:
	case s.due.Time().Sub(expiry) <= t.cfg.sweepInterval():
		return
	default:
		t.own.DropTimer(s.due.Time(), []byte{sweepRow})
	}
	t.putSweep(expiry, s.from)
}

func (t table) putSweep(at time.Time, from string) {
	t.own.SetTimer(at, []byte{sweepRow})
	rows.PutValue(t.own, []byte{sweepRow}, &sweep{schemas.MicrosOf(at), from})
}

// sweep deletes expired rows. If there are more rows than maxSwept, the next tick continues.
func (t table) sweep() {
	s, _ := rows.Load[sweep](t.own, []byte{sweepRow})
	visited, remains := 0, s.from != "" // many rows: they do not expire at once
	rows.LoadRows(t.own, rows.Scan{From: []byte(s.from), Limit: maxSwept}, func(name, value []byte) (bool, error) {
		visited, s.from = visited+1, string(name)
		if at, expires := t.expiry(name, value); expires && at.After(t.tx.Time()) {
			remains = true
		} else if expires {
			t.own.Delete(name)
		}
		return true, nil
	})
	switch {
	case visited == maxSwept:
		t.putSweep(t.tx.Time(), s.from)
	case remains:
		t.putSweep(t.tx.Time().Add(t.cfg.sweepInterval()), "")
	default:
		t.own.Delete([]byte{sweepRow})
	}
}

// expiry returns when a remembered action or the counts of a step expire. Other rows do not expire by a sweep.
func (t table) expiry(name, value []byte) (at time.Time, expires bool) {
	switch name[0] {
	case rememberRow:
		return packed.FirstOrdered[schemas.Micros](value).Time().Add(t.cfg.DedupWindow), true
	case countRow:
		return t.stepEnd(packed.FirstOrdered[schemas.Micros](name[1:])), true
	}
	return at, false
}
