package fanout

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Repeated backfills. After an unfollow, the pools may have dropped the hidden candidates, and walks have skipped the
// follower. Therefore every follow needs a backfill. A follower who toggles would make the followee deliver all its recents
// each time. The first follow and mostBackfills more in an interval are served immediately. After these, a timer delivers
// one backfill at the end of the interval if the edge is live then. It delivers the recents of that moment, so the pool
// ends up the same.

// mostBackfills is the number of immediate backfills per interval.
const mostBackfills = 5

// backfillBudget counts a follower's backfills in the current interval. The zero value has no interval.
type backfillBudget struct {
	start  schemas.Micros // arrival of the follow that started the interval
	n      int
	timing bool // a timer is set for the end of the interval
}

// spend returns the budget after a follow at a time, and reports whether its backfill is immediate.
func (l backfillBudget) spend(now schemas.Micros, interval time.Duration) (backfillBudget, bool) {
	switch {
	case l.timing:
		return l, false
	case l.n == 0 || now >= l.end(interval):
		return backfillBudget{start: now, n: 1}, true
	case l.n < mostBackfills:
		l.n++
		return l, true
	}
	l.timing = true
	return l, false
}

func (l backfillBudget) end(interval time.Duration) schemas.Micros {
	return schemas.MicrosOf(l.start.Time().Add(interval))
}

// appendBudget appends the row's value: start (8 bytes), timing (1 byte), n as uvarint.
func appendBudget(b []byte, l backfillBudget) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(l.start))
	timing := byte(0)
	if l.timing {
		timing = 1
	}
	return binary.AppendUvarint(append(b, timing), uint64(l.n))
}

// parseBudget parses a row's value. For nil it returns the zero budget.
func parseBudget(value []byte) (backfillBudget, error) {
	const head = 9
	if value == nil {
		return backfillBudget{}, nil
	}
	if len(value) > head && value[8] <= 1 {
		r := reader{rest: value[head:]}
		n := r.number()
		if !r.bad && len(r.rest) == 0 {
			return backfillBudget{start: schemas.Micros(binary.BigEndian.Uint64(value)), n: int(n), timing: value[8] == 1}, nil
		}
	}
	return backfillBudget{}, errors.New("parse backfill budget: cut short or malformed")
}

// backfillAgain delivers a backfill to a follower who followed before: immediately, or by the timer.
func (g *group) backfillAgain(tx *rows.Tx, b *book, e edge) error {
	row := rowOf(rowBudget, e.user)
	value, err := b.Get(row)
	if err != nil {
		return err
	}
	was, err := parseBudget(value)
	if err != nil {
		return err
	}
	is, immediate := was.spend(schemas.MicrosOf(tx.Time()), g.cfg.BackfillInterval)
	if is != was {
		if err := b.Put(row, appendBudget(nil, is)); err != nil {
			return err
		}
	}
	if immediate {
		return g.backfill(tx, b, e, 0)
	}
	tx.Effect(effectDeferred, 1)
	if was.timing {
		return nil
	}
	return b.SetTimer(is.end(g.cfg.BackfillInterval).Time(), row)
}

// backfillDeferred delivers the backfill of a follower whose timer fired, unless the user no longer follows.
func (g *group) backfillDeferred(tx *rows.Tx, own rows.Owner, user schemas.UserID) error {
	if err := own.Delete(rowOf(rowBudget, user)); err != nil {
		return err
	}
	r, err := registerOf(own, rowFollow, user)
	if err != nil || !r.live {
		return err
	}
	return onBook(tx, func(b *book) error {
		w, err := b.weightOf(user)
		if err != nil {
			return err
		}
		return g.backfillAgain(tx, b, edge{user, w.value})
	})
}
