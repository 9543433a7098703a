package interests

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// scale is the scale of strengths and of the recent pins of terms. Stored sums would be wrong on another one.
var scale = decay.NewScale(30 * 24 * time.Hour)

// userInterest is an interest of a user.
type userInterest struct {
	Strength decay.Sum
	Evidence []schemas.Evidence // newest first
}

// Pack implements packed.Row.
func (l *userInterest) Pack(p *packed.Packer) {
	p.Version(format)
	packed.Float(p, &l.Strength)
	packed.Items(p, &l.Evidence, func(p *packed.Packer, e *schemas.Evidence) {
		packed.String(p, &e.Pin)
		packed.String(p, &e.Verb)
		packed.Float(p, &e.Weight)
		packed.Int(p, &e.Time)
	})
}

// add adds an action to the strength, and keeps up to limit of the newest actions as evidence.
func (l *userInterest) add(m schemas.LikeMark, limit int) {
	l.Strength = l.Strength.Plus(decay.SumOf(m.Weight, m.Time, scale))
	l.Evidence = append(l.Evidence, schemas.Evidence{Pin: m.Pin, Verb: m.Verb, Weight: m.Weight, Time: schemas.Timestamp(m.Time)})
	slices.SortFunc(l.Evidence, func(a, b schemas.Evidence) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Pin, b.Pin), cmp.Compare(a.Verb, b.Verb))
	})
	l.Evidence = l.Evidence[:min(len(l.Evidence), limit)]
}

// like adds an action to an interest of a user.
func (g *group) like(tx *rows.Tx, m schemas.LikeMark) {
	own, name := tx.Of(string(m.User)), rows.Name(rowInterest, m.Interest)
	l, known := rows.Load[userInterest](own, name)
	if !known {
		l.Strength = decay.None()
	}
	l.add(m, g.cfg.MaxEvidence)
	rows.PutValue(own, name, &l)
	if !known {
		g.trim(tx, own)
	}
}

// all returns the user's interests.
func all(own rows.RowReader) (map[string]userInterest, error) {
	list := map[string]userInterest{}
	err := rows.Each(own, []byte{rowInterest}, func(id string, l userInterest) { list[id] = l })
	return list, err
}

// trim deletes the weakest interests of a user over the bound, once they exceed it by a quarter.
func (g *group) trim(tx *rows.Tx, own rows.Owner) {
	limit := g.cfg.MaxInterests + g.cfg.MaxInterests/4
	if len(rows.LoadNames(own, []byte{rowInterest}, limit+1)) <= limit {
		return
	}
	list, err := all(own)
	own.Fail(err)
	ids := strongest(list)
	for _, id := range ids[min(len(ids), g.cfg.MaxInterests):] {
		tx.Count("weak_interest")
		own.Delete(rows.Name(rowInterest, id))
	}
}

// strongest returns the ids, strongest first.
func strongest(list map[string]userInterest) []string {
	return slices.SortedFunc(maps.Keys(list), func(a, b string) int {
		return cmp.Or(cmp.Compare(list[b].Strength, list[a].Strength), cmp.Compare(a, b))
	})
}

// day returns the day of a time since 1970; earlier times belong to the first day.
func day(at schemas.Micros) uint32 {
	return uint32(max(0, int64(at)/int64(24*time.Hour/time.Microsecond)))
}

// maxStale bounds the rows that one event deletes. Later events delete the rest.
const maxStale = 50

// count counts an event of an interest. If its row is new, count also deletes rows that are days or more older than the
// event.
func count(own rows.Owner, e schemas.EngagementMark, days int) {
	newest := day(e.Time)
	name := binary.BigEndian.AppendUint32([]byte{rowCount}, newest)
	name = append(append(append(name, e.Source...), 0), e.What...)
	if rows.AddNumber(own, name, 1) > 1 { // the row was there
		return
	}
	for _, name := range rows.LoadNames(own, []byte{rowCount}, maxStale) {
		if int64(binary.BigEndian.Uint32(name[1:])) > int64(newest)-int64(days) {
			break
		}
		own.Delete(name)
	}
}
