package layout

import (
	"bytes"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Each pin that a user was shown has a row for lookups. An index by position is used to remove the oldest pins and to read the
// newest ones with one scan. It has one row per visit: the pins, oldest first, under the last of their positions, as in
// KindMaterialized. (A row of an earlier format has one position and reads as a visit of one pin.) A row is deleted with its
// last pin. Until then, readers skip its removed pins.

// Seen records when a pin was shown.
type Seen struct {
	Position int64
	Time     schemas.Micros // of the visit
	Created  schemas.Micros // of the pin
}

// Pack implements packed.Row.
func (s *Seen) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Int(p, &s.Position)
	packed.Int(p, &s.Time)
	packed.Int(p, &s.Created)
}

// AppendSeen appends the value of the row.
func AppendSeen(b []byte, s Seen) []byte { return packed.AppendRow(b, &s) }

// AppendIndexed appends the next pin of a visit. Ids contain no control characters.
func AppendIndexed(visit []byte, pin schemas.PinID) []byte {
	if len(visit) > 0 {
		visit = append(visit, 0)
	}
	return append(visit, pin...)
}

// WithoutIndexed returns the pins of a visit with an empty id in place of a pin. The others keep their positions.
func WithoutIndexed(visit []byte, pin schemas.PinID) []byte {
	pins := bytes.Split(visit, []byte{0})
	for i := range pins {
		if string(pins[i]) == string(pin) {
			pins[i] = nil
		}
	}
	return bytes.Join(pins, []byte{0})
}

// IndexedPin is a pin in the index.
type IndexedPin struct {
	Pin      schemas.PinID // "": it is no longer seen
	Position int64
	Last     bool // the last pin of its visit
}

// IndexedBetween returns the pins of the positions from to to, inclusive, oldest first.
func IndexedBetween(t Table, from, to int64) ([]IndexedPin, error) {
	var list []IndexedPin
	scan := rows.Scan{Prefix: []byte{KindSeenIndex}, From: PositionRow(KindSeenIndex, from)}
	err := t.Scan(scan, func(name, visit []byte) bool {
		pins, last := bytes.Split(visit, []byte{0}), PositionOf(name)
		for i, pin := range pins {
			left := len(pins) - 1 - i
			if at := last - int64(left); from <= at && at <= to {
				list = append(list, IndexedPin{schemas.PinID(pin), at, left == 0})
			}
		}
		return last < to
	})
	return list, err
}

// LoadRecentlySeen loads the n most recently shown pins, which then count as seen without a lookup.
func (v *View) LoadRecentlySeen(n int) error {
	v.RecentlySeen = make(map[schemas.PinID]struct{}, min(n, int(v.State.Head)))
	return v.Scan(rows.Scan{Prefix: []byte{KindSeenIndex}, Reverse: true}, func(name, visit []byte) bool {
		for at := PositionOf(name); len(visit) > 0; at-- {
			if at <= v.State.SeenTrimmed || len(v.RecentlySeen) == n {
				return false
			}
			cut := bytes.LastIndexByte(visit, 0)
			v.RecentlySeen[schemas.PinID(visit[cut+1:])] = struct{}{}
			visit = visit[:max(cut, 0)]
		}
		return len(v.RecentlySeen) < n
	})
}
