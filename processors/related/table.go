package related

import (
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// The kinds of rows, by the first byte of their names.
const (
	rowNeighbor = 'n' // id → strength and state of the neighbor
	rowPlace    = 'p' // strength (best first), id → empty
	rowTotals   = 'a' // → total strength of all occurrences, number of neighbors kept
	rowSave     = 's' // time (newest first), pin → the record of board-saves
)

func placeName(s strength, id schemas.ID) []byte {
	return append(ranked.AppendScore([]byte{rowPlace}, float64(s)), id...)
}

// Pack implements packed.Row. The id is in the name of the row.
func (n *neighbor) Pack(p *packed.Packer) {
	p.Version(3)
	packed.Float(p, &n.strength)
	ranked.PackNeighbor(p, &n.Neighbor)
}

// find returns one neighbor, or nil if there is none.
func find(t rows.RowReader, id schemas.ID) (*neighbor, error) {
	n, found, err := rows.Value[neighbor](t, rows.Name(rowNeighbor, id))
	if err != nil || !found {
		return nil, err
	}
	n.ID = id
	return &n, nil
}

// totals describes all neighbors of a pin or interest together.
type totals struct {
	strength strength // of all occurrences, including those of neighbors that are no longer kept
	kept     int      // number of neighbors
	deleted  bool     // a deleted pin: it gets no more neighbors
}

// Pack implements packed.Row.
func (w *totals) Pack(p *packed.Packer) {
	p.Version(1)
	p.Flags(&w.deleted)
	packed.Float(p, &w.strength)
	packed.Int(p, &w.kept)
}

func readTotals(t rows.RowReader) (totals, error) {
	w, found, err := rows.Value[totals](t, []byte{rowTotals})
	if !found {
		w.strength = decay.None()
	}
	return w, err
}

// places returns the ids of the strongest neighbors, up to limit of them; 0: all.
func places(t rows.RowReader, limit int) ([]schemas.ID, error) {
	names, err := rows.Names(t, []byte{rowPlace}, limit)
	ids := make([]schemas.ID, len(names))
	for i, name := range names {
		if len(name) <= 1+ranked.ScoreBytes {
			return nil, rows.Unreadable(name, packed.ErrTorn)
		}
		ids[i] = schemas.ID(name[1+ranked.ScoreBytes:])
	}
	return ids, err
}

// best returns the strongest neighbors, with their share in the total strength.
func best(t rows.RowReader, limit int) ([]neighbor, error) {
	if limit == 0 {
		return nil, nil
	}
	ids, err := places(t, limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	all, err := readTotals(t)
	if err != nil {
		return nil, err
	}
	list := make([]neighbor, 0, len(ids))
	for _, id := range ids {
		n, err := find(t, id)
		if err != nil {
			return nil, err
		}
		if n == nil {
			return nil, fmt.Errorf("read neighbor %s: its place has no row", id)
		}
		n.share = n.strength.Share(all.strength)
		list = append(list, *n)
	}
	return list, nil
}

// neighbors holds the neighbors of one owner during one callback.
type neighbors struct {
	own rows.Owner
	cfg Config
}

func (t neighbors) best(limit int) []neighbor {
	list, bad := best(t.own, limit)
	t.own.Fail(bad)
	return list
}

func (t neighbors) find(id schemas.ID) *neighbor {
	n, bad := find(t.own, id)
	t.own.Fail(bad)
	return n
}

func (t neighbors) totals() totals {
	all, bad := readTotals(t.own)
	t.own.Fail(bad)
	return all
}

func (t neighbors) places() []schemas.ID {
	ids, bad := places(t.own, 0)
	t.own.Fail(bad)
	return ids
}

// add increases the strength of a neighbor. If the owner is a deleted pin, add changes nothing and returns false.
func (t neighbors) add(s *schemas.Neighbor, weight float64, at schemas.Micros) bool {
	all := t.totals()
	if all.deleted {
		return false
	}
	t.strengthen(all, s, weight, at)
	return true
}

func (t neighbors) strengthen(all totals, s *schemas.Neighbor, weight float64, at schemas.Micros) {
	n := t.find(s.ID)
	if n == nil {
		n = &neighbor{Neighbor: *s, strength: decay.None()}
		all.kept++
	} else {
		t.own.Delete(placeName(n.strength, n.ID))
	}
	gain := decay.SumOf(weight, at, scale)
	n.strength, all.strength = n.strength.Plus(gain), all.strength.Plus(gain)
	n.update(s)
	t.put(n)
	// The trim waits for a quarter above the bound. Therefore the cost of scanning the places is constant per added
	// neighbor.
	if all.kept > t.cfg.MaxNeighbors+t.cfg.MaxNeighbors/4 {
		all.kept = t.trim()
	}
	rows.PutValue(t.own, []byte{rowTotals}, &all)
}

func (t neighbors) put(n *neighbor) {
	rows.PutValue(t.own, rows.Name(rowNeighbor, n.ID), n)
	t.own.Put(placeName(n.strength, n.ID), nil)
}

// trim deletes the weakest neighbors over the bound, and returns the number of the others. Their strength stays in the
// total, because shares are relative to all occurrences.
func (t neighbors) trim() (left int) {
	ids := t.places()
	limit := min(t.cfg.MaxNeighbors, len(ids))
	for _, id := range ids[limit:] {
		n := t.find(id)
		if n == nil {
			t.own.Fail(fmt.Errorf("read neighbor %s: its place has no row", id))
			return 0
		}
		t.own.Delete(placeName(n.strength, id))
		t.own.Delete(rows.Name(rowNeighbor, id))
	}
	return limit
}

// remove deletes one neighbor if it exists. Its strength stays in the total.
func (t neighbors) remove(id schemas.ID) {
	n := t.find(id)
	if n == nil {
		return
	}
	all := t.totals()
	all.kept--
	t.own.Delete(placeName(n.strength, id))
	t.own.Delete(rows.Name(rowNeighbor, id))
	rows.PutValue(t.own, []byte{rowTotals}, &all)
}

// clear deletes all neighbors of a deleted pin and records that it is deleted. It returns their ids.
func (t neighbors) clear() []schemas.ID {
	ids := t.places()
	for _, id := range ids {
		t.remove(id)
	}
	rows.PutValue(t.own, []byte{rowTotals}, &totals{strength: decay.None(), deleted: true})
	return ids
}

// board accesses the rows of one board.
type board struct {
	own     rows.Owner
	limit   int
	streams *topics.Streams
}

func saveName(s *schemas.BoardSave) []byte {
	return append(packed.AppendOrdered([]byte{rowSave}, ^s.Time), s.Pin.ID...) // newest first, including times before 1970
}

// add stores a save, and returns the stored saves of other pins, newest first.
func (b board) add(s *schemas.BoardSave) []*schemas.BoardSave {
	kept := b.saves()
	b.keep(s, kept)
	return slices.DeleteFunc(kept, func(other *schemas.BoardSave) bool { return other.Pin.ID == s.Pin.ID })
}

// saves returns the stored saves, newest first.
func (b board) saves() []*schemas.BoardSave {
	var list []*schemas.BoardSave
	rows.LoadRows(b.own, rows.Scan{Prefix: []byte{rowSave}}, func(row, value []byte) (bool, error) {
		s, err := b.streams.BoardSaves.Decode(value)
		if err != nil {
			return false, rows.Unreadable(row, err)
		}
		list = append(list, s)
		return true, nil
	})
	return list
}

// keep stores a save, and deletes saves over the bound. It does not store a save that is older than all saves of a full
// board.
func (b board) keep(s *schemas.BoardSave, kept []*schemas.BoardSave) {
	if b.limit == 0 || len(kept) >= b.limit && s.Time < kept[b.limit-1].Time {
		return
	}
	for _, old := range kept[min(b.limit-1, len(kept)):] {
		b.own.Delete(saveName(old))
	}
	rows.PutRecord(b.own, saveName(s), b.streams.BoardSaves, s)
}
