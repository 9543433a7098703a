package interests

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// userInterest is an interest of a user.
type userInterest struct {
	Strength decay.Sum
	Evidence []schemas.Evidence // newest first
}

// add adds an action to the strength, and keeps up to limit of the newest actions as evidence.
func (l *userInterest) add(m schemas.LikeMark, scale decay.Scale, limit int) {
	l.Strength = l.Strength.Plus(decay.SumOf(m.Weight, m.Time, scale))
	l.Evidence = append(l.Evidence, schemas.Evidence{Pin: m.Pin, Verb: m.Verb, Weight: m.Weight, Time: m.Time})
	slices.SortFunc(l.Evidence, func(a, b schemas.Evidence) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Pin, b.Pin), cmp.Compare(a.Verb, b.Verb))
	})
	l.Evidence = l.Evidence[:min(len(l.Evidence), limit)]
}

// userRows accesses the rows of a user.
type userRows struct {
	own rows.Owner
	cfg Config
}

func interestName(id string) []byte { return append([]byte{rowInterest}, id...) }

// like adds an action to an interest. A mark without an interest removes a deleted pin from the evidence.
func (t userRows) like(tx *rows.Tx, m schemas.LikeMark, scale decay.Scale) error {
	if m.Interest == "" {
		return t.removeEvidence(m.Pin)
	}
	name := interestName(string(m.Interest))
	l, known, err := rows.Value[userInterest](t.own, name)
	if err != nil {
		return err
	}
	if !known {
		l.Strength = decay.None()
	}
	l.add(m, scale, t.cfg.MaxEvidence)
	if err := rows.PutValue(t.own, name, &l); err != nil || known {
		return err
	}
	return t.trim(tx)
}

// all returns the user's interests.
func all(own rows.RowReader) (map[string]userInterest, error) {
	list := map[string]userInterest{}
	err := rows.Each(own, []byte{rowInterest}, func(id string, l userInterest) { list[id] = l })
	return list, err
}

// trim deletes the weakest interests over the bound, once they exceed it by a quarter.
func (t userRows) trim(tx *rows.Tx) error {
	limit := t.cfg.MaxInterests + t.cfg.MaxInterests/4
	known, err := rows.Names(t.own, []byte{rowInterest}, limit+1)
	if err != nil || len(known) <= limit {
		return err
	}
	list, err := all(t.own)
	if err != nil {
		return err
	}
	for _, id := range strongest(list)[t.cfg.MaxInterests:] {
		tx.Count("weak_interest")
		if err := t.own.Delete(interestName(id)); err != nil {
			return err
		}
	}
	return nil
}

// strongest returns the ids, strongest first.
func strongest(list map[string]userInterest) []string {
	ids := make([]string, 0, len(list))
	for id := range list {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(list[b].Strength, list[a].Strength), cmp.Compare(a, b))
	})
	return ids
}

// removeEvidence removes a pin from the evidence.
func (t userRows) removeEvidence(pin schemas.PinID) error {
	list, err := all(t.own)
	if err != nil {
		return err
	}
	for id, l := range list {
		n := len(l.Evidence)
		l.Evidence = slices.DeleteFunc(l.Evidence, func(e schemas.Evidence) bool { return e.Pin == pin })
		if len(l.Evidence) == n {
			continue
		}
		if err := rows.PutValue(t.own, interestName(id), &l); err != nil {
			return err
		}
	}
	return nil
}

// clear deletes all rows of the user.
func (t userRows) clear() error {
	list, err := all(t.own)
	if err != nil {
		return err
	}
	for id := range list {
		if err := t.own.Delete(interestName(id)); err != nil {
			return err
		}
	}
	return nil
}

// day returns the day of a time since 1970; earlier times belong to the first day.
func day(at schemas.Micros) uint32 {
	return uint32(max(0, int64(at)/int64(24*time.Hour/time.Microsecond)))
}

func dayName(d uint32) []byte { return binary.BigEndian.AppendUint32([]byte{rowCount}, d) }

// maxStale bounds the rows that one event deletes. Later events delete the rest.
const maxStale = 50

// count counts an event of an interest. If its row is new, count also deletes rows that are days or more older than the
// event.
func count(own rows.Owner, e schemas.EngagementMark, days int) error {
	name := append(append(append(dayName(day(e.Time)), e.Source...), 0), e.What...)
	n, known, err := rows.Value[number](own, name)
	if err != nil {
		return err
	}
	n++
	if err := rows.PutValue(own, name, &n); err != nil || known {
		return err
	}
	newest := day(e.Time)
	oldest, err := rows.Names(own, []byte{rowCount}, maxStale)
	if err != nil {
		return err
	}
	for _, name := range oldest {
		if int64(binary.BigEndian.Uint32(name[1:])) > int64(newest)-int64(days) {
			break
		}
		if err := own.Delete(name); err != nil {
			return err
		}
	}
	return nil
}
