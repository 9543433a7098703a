package pools

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Each pin that a user was shown has a row, which is looked up. An index by position is used to remove the oldest pins and to
// read the newest at once. It has one row per visit: the pins, oldest first, under the last of their positions, as in
// rowFrozen. (Earlier releases wrote one row per position, which reads as a visit of one pin.) A row is deleted with its last
// pin. Until then readers skip its removed pins.

// seen records when a pin was shown.
type seen struct {
	position int64
	time     schemas.Micros // of the visit
	created  schemas.Micros // of the pin
}

func appendSeen(b []byte, s seen) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(s.position))
	b = binary.BigEndian.AppendUint64(b, uint64(s.time))
	return binary.BigEndian.AppendUint64(b, uint64(s.created))
}

func parseSeen(value []byte) (seen, error) {
	if len(value) != 24 {
		return seen{}, errors.New("parse seen: cut short or malformed")
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(value[8*i:]) }
	return seen{position: int64(at(0)), time: schemas.Micros(at(1)), created: schemas.Micros(at(2))}, nil
}

// seenOf returns the items that the user has seen before.
func seenOf(own rows.Owner, items []schemas.ServedItem) (map[schemas.PinID]bool, error) {
	seen := make(map[schemas.PinID]bool, len(items))
	for i := range items {
		value, err := own.Get(rowOf(rowSeen, items[i].Pin))
		if err != nil {
			return nil, err
		}
		if value != nil {
			seen[items[i].Pin] = true
		}
	}
	return seen, nil
}

// see marks the pins of new entries as seen.
func see(own rows.Owner, added *schemas.FeedEntries) error {
	var visit []byte
	for e := range added.All() {
		at := seen{position: e.Position, time: e.Time, created: e.Created}
		if err := own.Put(rowOf(rowSeen, e.Pin), appendSeen(nil, at)); err != nil {
			return err
		}
		visit = appendIndexed(visit, e.Pin)
	}
	return own.Put(positionRow(rowIndex, added.Last()), visit)
}

// appendIndexed appends the next pin of a visit. Ids contain no control characters.
func appendIndexed(visit []byte, pin schemas.PinID) []byte {
	if len(visit) > 0 {
		visit = append(visit, 0)
	}
	return append(visit, pin...)
}

// indexed is a pin in the index.
type indexed struct {
	pin      schemas.PinID
	position int64
	last     bool // the last pin of its visit
}

// indexedOf returns the pins of an index row, oldest first.
func indexedOf(name, visit []byte) []indexed {
	pins := bytes.Split(visit, []byte{0})
	list, first := make([]indexed, len(pins)), positionOf(name)-int64(len(pins))+1
	for i, pin := range pins {
		list[i] = indexed{schemas.PinID(pin), first + int64(i), i == len(pins)-1}
	}
	return list
}

// indexedBetween returns the pins of the positions from to to, inclusive, oldest first.
func indexedBetween(t table, from, to int64) ([]indexed, error) {
	var list []indexed
	scan := rows.Scan{Prefix: []byte{rowIndex}, From: positionRow(rowIndex, from)}
	err := t.Scan(scan, func(name, visit []byte) bool {
		for _, p := range indexedOf(name, visit) {
			if from <= p.position && p.position <= to {
				list = append(list, p)
			}
		}
		return positionOf(name) < to
	})
	return list, err
}

// forget removes the oldest seen pins beyond the cap. From then on, candidates created before the oldest remaining one was
// shown are refused, because the removed pins are among them. The creation times of the removed pins count, too: because
// clocks differ, a pin can be created up to five minutes after it was shown.
func forget(tx *rows.Tx, own rows.Owner, st *state, most int64) error {
	// atOnce bounds the work after the cap was lowered: it takes several visits. longest is the maximum
	// size of the two rows of a pin, in bytes.
	const atOnce, longest = 2000, 2 << 10
	rows, bytes := tx.Room()
	over := min(st.Head-st.Unseen-most, atOnce, int64(min(rows/4, bytes/2/longest)))
	if over <= 0 {
		return nil
	}
	if st.Unseen == 0 {
		st.Refused = math.MinInt64
	}
	to := st.Unseen + over
	oldest, err := indexedBetween(own, st.Unseen+1, to+1)
	if err != nil {
		return err
	}
	for _, p := range oldest {
		was, err := seenAs(own, p.pin)
		switch {
		case err != nil:
			return err
		case p.position > to: // it stays
			st.refuse(was.time)
			continue
		}
		st.refuse(was.created + 1)
		if err := unsee(own, p); err != nil {
			return err
		}
	}
	st.Unseen = to
	return nil
}

// unsee removes a pin, and its index row if it is the last pin of the visit.
func unsee(own rows.Owner, p indexed) error {
	if err := own.Delete(rowOf(rowSeen, p.pin)); err != nil || !p.last {
		return err
	}
	return own.Delete(positionRow(rowIndex, p.position))
}

// seenAs returns the seen row of a pin of the index.
func seenAs(t table, pin schemas.PinID) (seen, error) {
	value, err := t.Get(rowOf(rowSeen, pin))
	if err != nil {
		return seen{}, err
	}
	at, err := parseSeen(value)
	if err != nil {
		return seen{}, fmt.Errorf("%s of the index: %w", pin, err)
	}
	return at, nil
}

// remember loads the n most recently shown pins, which then count as seen without a lookup.
func (v *view) remember(n int) error {
	v.lately = make(map[schemas.PinID]struct{}, min(n, int(v.state.Head)))
	return v.Scan(rows.Scan{Prefix: []byte{rowIndex}, Reverse: true}, func(name, visit []byte) bool {
		for at := positionOf(name); len(visit) > 0; at-- {
			if at <= v.state.Unseen || len(v.lately) == n {
				return false
			}
			cut := bytes.LastIndexByte(visit, 0)
			v.lately[schemas.PinID(visit[cut+1:])] = struct{}{}
			visit = visit[:max(cut, 0)]
		}
		return len(v.lately) < n
	})
}
