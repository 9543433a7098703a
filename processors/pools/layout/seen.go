package layout

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Each pin that a user was shown has a row, which is looked up. An index by position is used to remove the oldest pins and to
// read the newest at once. It has one row per visit: the pins, oldest first, under the last of their positions, as in
// rowFrozen. (Earlier releases wrote one row per position, which reads as a visit of one pin.) A row is deleted with its last
// pin. Until then readers skip its removed pins.

// Seen records when a pin was shown.
type Seen struct {
	Position int64
	Time     schemas.Micros // of the visit
	Created  schemas.Micros // of the pin
}

func AppendSeen(b []byte, s Seen) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(s.Position))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Time))
	return binary.BigEndian.AppendUint64(b, uint64(s.Created))
}

func ParseSeen(value []byte) (Seen, error) {
	if len(value) != 24 {
		return Seen{}, errors.New("parse seen: cut short or malformed")
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(value[8*i:]) }
	return Seen{Position: int64(at(0)), Time: schemas.Micros(at(1)), Created: schemas.Micros(at(2))}, nil
}

// AppendIndexed appends the next pin of a visit. Ids contain no control characters.
func AppendIndexed(visit []byte, pin schemas.PinID) []byte {
	if len(visit) > 0 {
		visit = append(visit, 0)
	}
	return append(visit, pin...)
}

// IndexedPin is a pin in the index.
type IndexedPin struct {
	Pin      schemas.PinID
	Position int64
	Last     bool // the last pin of its visit
}

// indexedPins returns the pins of an index row, oldest first.
func indexedPins(name, visit []byte) []IndexedPin {
	pins := bytes.Split(visit, []byte{0})
	list, first := make([]IndexedPin, len(pins)), PositionOf(name)-int64(len(pins))+1
	for i, pin := range pins {
		list[i] = IndexedPin{schemas.PinID(pin), first + int64(i), i == len(pins)-1}
	}
	return list
}

// IndexedBetween returns the pins of the positions from to to, inclusive, oldest first.
func IndexedBetween(t Table, from, to int64) ([]IndexedPin, error) {
	var list []IndexedPin
	scan := rows.Scan{Prefix: []byte{KindSeenIndex}, From: PositionRow(KindSeenIndex, from)}
	err := t.Scan(scan, func(name, visit []byte) bool {
		for _, p := range indexedPins(name, visit) {
			if from <= p.Position && p.Position <= to {
				list = append(list, p)
			}
		}
		return PositionOf(name) < to
	})
	return list, err
}

// LoadRecentlySeen loads the n most recently shown pins, which then count as seen without a lookup.
func (v *View) LoadRecentlySeen(n int) error {
	v.RecentlySeen = make(map[schemas.PinID]struct{}, min(n, int(v.State.Head)))
	return v.Scan(rows.Scan{Prefix: []byte{KindSeenIndex}, Reverse: true}, func(name, visit []byte) bool {
		for at := PositionOf(name); len(visit) > 0; at-- {
			if at <= v.State.Unseen || len(v.RecentlySeen) == n {
				return false
			}
			cut := bytes.LastIndexByte(visit, 0)
			v.RecentlySeen[schemas.PinID(visit[cut+1:])] = struct{}{}
			visit = visit[:max(cut, 0)]
		}
		return len(v.RecentlySeen) < n
	})
}
