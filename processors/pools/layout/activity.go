package layout

import (
	"encoding/binary"
	"errors"

	"github.com/smartfeed/smartfeed/schemas"
)

// Activity records when a user was last active, in one row. A user without a visit for AwayAfter is inactive: the followees
// are notified and deliver nothing new. When the user is reactivated, every followee is asked for a backfill, and the answers
// are counted.
type Activity struct {
	LastSeen   schemas.Micros // arrival of the last visit, or of the record that started the timer; 0: neither happened
	Inactive   bool
	CheckAt    schemas.Micros // when the inactivity timer fires; 0 or in the past: none is set
	BackfillID schemas.Micros // time of the last backfill request (reactivation or rebuild), which its answers carry; 0: none
	Expected   int            // answers expected to that request
	Received   int            // answers received
}

// IsBackfilling reports whether answers are outstanding.
func (p Activity) IsBackfilling() bool { return p.Received < p.Expected }

func AppendActivity(b []byte, p Activity) []byte {
	away := byte(0)
	if p.Inactive {
		away = 1
	}
	b = binary.BigEndian.AppendUint64(append(b, away), uint64(p.LastSeen))
	b = binary.BigEndian.AppendUint64(b, uint64(p.BackfillID))
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.Expected)), uint64(p.Received))
	return binary.BigEndian.AppendUint64(b, uint64(p.CheckAt))
}

var errActivity = errors.New("parse presence: cut short or malformed")

func ParseActivity(value []byte) (Activity, error) {
	const head, tail = 17, 8
	if len(value) < head || value[0] > 1 {
		return Activity{}, errActivity
	}
	p := Activity{
		Inactive:   value[0] == 1,
		LastSeen:   schemas.Micros(binary.BigEndian.Uint64(value[1:])),
		BackfillID: schemas.Micros(binary.BigEndian.Uint64(value[9:])),
	}
	want, n := binary.Uvarint(value[head:])
	if n <= 0 {
		return Activity{}, errActivity
	}
	came, m := binary.Uvarint(value[head+n:])
	if m <= 0 || want > 1<<40 || came > want {
		return Activity{}, errActivity
	}
	p.Expected, p.Received = int(want), int(came)
	switch rest := value[head+n+m:]; len(rest) {
	case 0: // written by an earlier release, without looks
	case tail:
		p.CheckAt = schemas.Micros(binary.BigEndian.Uint64(rest))
	default:
		return Activity{}, errActivity
	}
	return p, nil
}

// ReadActivity reads the presence of a user. It returns nil if there is none.
func ReadActivity(t Table) (*Activity, error) {
	value, err := t.Get([]byte{KindActivity})
	if err != nil || value == nil {
		return nil, err
	}
	p, err := ParseActivity(value)
	return &p, err
}
