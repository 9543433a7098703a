package interests

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// impression is one impression of a pin.
type impression struct {
	Pin    schemas.PinID
	Source schemas.Source
	Time   schemas.Micros
}

// shown holds impressions of a user in one hour: the newest of each pin of this partition, the newest first.
type shown struct{ Impressions []impression }

// Pack implements packed.Row.
func (s *shown) Pack(p *packed.Packer) {
	p.Version(format)
	packed.Items(p, &s.Impressions, func(p *packed.Packer, i *impression) {
		packed.String(p, &i.Pin)
		packed.String(p, &i.Source)
		packed.Int(p, &i.Time)
	})
}

// maxShown bounds the impressions of a user that a partition stores for an hour.
const maxShown = 200

// add adds the impressions of a visit.
func (s *shown) add(i *schemas.Impressions, pins []schemas.ShownPin) {
	for _, p := range pins {
		s.Impressions = append(s.Impressions, impression{p.Pin, p.Source, i.Time})
	}
	slices.SortStableFunc(s.Impressions, func(a, b impression) int { return cmp.Compare(b.Time, a.Time) })
	known := make(map[schemas.PinID]bool, len(s.Impressions))
	s.Impressions = slices.DeleteFunc(s.Impressions, func(i impression) bool {
		again := known[i.Pin]
		known[i.Pin] = true
		return again
	})
	s.Impressions = s.Impressions[:min(len(s.Impressions), maxShown)]
}

// shownRows accesses the impressions of a user. They are common rows of the partition, because a visit shows several pins of
// it: a row for each pin and user would cost 25 times as many writes.
type shownRows struct {
	common rows.Owner
	user   schemas.UserID
	window time.Duration
}

func (t shownRows) prefix() []byte { return append(append([]byte{rowShown}, t.user...), 0) }

// name returns the name of the row for the hour of a time. The names sort newest first.
func (t shownRows) name(at schemas.Micros) []byte {
	hour := uint32(max(0, int64(at)/int64(time.Hour/time.Microsecond)))
	return binary.BigEndian.AppendUint32(t.prefix(), math.MaxUint32-hour)
}

// add stores the impressions of a visit that arrived at now.
func (t shownRows) add(i *schemas.Impressions, pins []schemas.ShownPin, now time.Time) {
	name := t.name(i.Time)
	hour, known := rows.Load[shown](t.common, name)
	hour.add(i, pins)
	rows.PutValue(t.common, name, &hour)
	if !known {
		t.common.SetTimer(now.Add(t.window+time.Hour), name)
	}
}

// source returns the source of the user's last impression of a pin in the window before at, or schemas.DirectSource.
func (t shownRows) source(pin schemas.PinID, at schemas.Micros) schemas.Source {
	source, hours := schemas.DirectSource, int(t.window/time.Hour)+2 // the window may begin and end within an hour
	scan := rows.Scan{Prefix: t.prefix(), From: t.name(at), Limit: hours}
	rows.LoadRows(t.common, scan, func(name, value []byte) (bool, error) {
		hour, err := packed.Decode[shown](value)
		if err != nil {
			return false, rows.Unreadable(name, err)
		}
		last := slices.IndexFunc(hour.Impressions, func(i impression) bool { return i.Pin == pin && i.Time <= at })
		if last < 0 {
			return true, nil
		}
		if i := hour.Impressions[last]; at.Time().Sub(i.Time.Time()) <= t.window {
			source = i.Source
		}
		return false, nil
	})
	return source
}
