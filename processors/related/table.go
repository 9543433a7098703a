package related

import (
	"fmt"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
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

// add increases the strength of a neighbor. If the owner is a deleted pin, add changes nothing and returns false.
func (t neighbors) add(s *schemas.Neighbor, weight float64, at schemas.Micros) bool {
	all, bad := readTotals(t.own)
	if t.own.Fail(bad); all.deleted {
		return false
	}
	n, bad := find(t.own, s.ID)
	if t.own.Fail(bad); n == nil {
		n = &neighbor{Neighbor: *s, strength: decay.None()}
		all.kept++
	} else {
		t.own.Delete(placeName(n.strength, n.ID))
	}
	gain := decay.SumOf(weight, at, scale)
	n.strength, all.strength = n.strength.Plus(gain), all.strength.Plus(gain)
	n.update(s)
	rows.PutValue(t.own, rows.Name(rowNeighbor, n.ID), n)
	t.own.Put(placeName(n.strength, n.ID), nil)
	// The trim waits for a quarter above the bound. Therefore the cost of scanning the places is constant per added
	// neighbor.
	if all.kept > t.cfg.MaxNeighbors+t.cfg.MaxNeighbors/4 {
		all.kept = t.trim()
	}
	rows.PutValue(t.own, []byte{rowTotals}, &all)
	return true
}

// trim deletes the weakest neighbors over the bound, and returns the number of the others. Their strength stays in the
// total, because shares are relative to all occurrences.
func (t neighbors) trim() (left int) {
	ids, bad := places(t.own, 0)
	t.own.Fail(bad)
	limit := min(t.cfg.MaxNeighbors, len(ids))
	for _, id := range ids[limit:] {
		n, bad := find(t.own, id)
		if t.own.Fail(bad); n == nil {
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
	n, bad := find(t.own, id)
	if t.own.Fail(bad); n == nil {
		return
	}
	all, bad := readTotals(t.own)
	t.own.Fail(bad)
	all.kept--
	t.own.Delete(placeName(n.strength, id))
	t.own.Delete(rows.Name(rowNeighbor, id))
	rows.PutValue(t.own, []byte{rowTotals}, &all)
}

// clear deletes all neighbors of a deleted pin and records that it is deleted. It returns their ids.
func (t neighbors) clear() []schemas.ID {
	ids, bad := places(t.own, 0)
	t.own.Fail(bad)
	for _, id := range ids {
		t.remove(id)
	}
	rows.PutValue(t.own, []byte{rowTotals}, &totals{strength: decay.None(), deleted: true})
	return ids
}

func saveName(s *schemas.BoardSave) []byte {
	return append(packed.AppendOrdered([]byte{rowSave}, ^s.Time), s.Pin.ID...) // newest first, including times before 1970
}

// saves returns the stored saves of a board, newest first.
func (g *group) saves(own rows.Owner) []*schemas.BoardSave {
	var list []*schemas.BoardSave
	rows.LoadRows(own, rows.Scan{Prefix: []byte{rowSave}}, func(row, value []byte) (bool, error) {
		s, err := g.streams.BoardSaves.Decode(value)
		if err != nil {
			return false, rows.Unreadable(row, err)
		}
		list = append(list, s)
		return true, nil
	})
	return list
}

// keepSave stores a save, and deletes saves over the bound. It does not store a save that is older than all saves of a full
// board.
func (g *group) keepSave(own rows.Owner, s *schemas.BoardSave, kept []*schemas.BoardSave) {
	limit := g.cfg.PairedBoardPins
	if limit == 0 || len(kept) >= limit && s.Time < kept[limit-1].Time {
		return
	}
	for _, old := range kept[min(limit-1, len(kept)):] {
		own.Delete(saveName(old))
	}
	rows.PutRecord(own, saveName(s), g.streams.BoardSaves, s)
}
