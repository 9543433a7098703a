package related

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// The rows, by the first byte of their name.
const (
	rowNeighbour = 'n' // id → strength, version, quality, ranked body
	rowPlace     = 'p' // strength (best first), id → nothing
	rowAll       = 'a' // → strength of all that was ever added, number of neighbours kept
	rowSave      = 's' // time (newest first), pin → the record of board-saves
)

const headBytes = 3 * 8 // strength, version, quality

var errTorn = errors.New("decode row: cut short, or not of a known form")

// table is what a reader of rows needs; rows.Owner and rows.Snapshot are both one.
type table interface {
	Get(row []byte) ([]byte, error)
	Scan(s rows.Scan, visit func(row, value []byte) bool) error
}

func neighbourName(id schemas.ID) []byte { return append([]byte{rowNeighbour}, id...) }

func placeName(s strength, id schemas.ID) []byte {
	return append(ranked.AppendScore([]byte{rowPlace}, float64(s)), id...)
}

// placeOf returns the id in the name of a place.
func placeOf(name []byte) (schemas.ID, error) {
	if len(name) <= 1+ranked.ScoreBytes {
		return "", errTorn
	}
	return schemas.ID(name[1+ranked.ScoreBytes:]), nil
}

func (n *neighbour) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, math.Float64bits(float64(n.strength)))
	b = binary.BigEndian.AppendUint64(b, uint64(n.version))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(n.quality))
	return ranked.AppendBody(b, &n.body)
}

func decodeNeighbour(id schemas.ID, b []byte) (neighbour, error) {
	if len(b) < headBytes {
		return neighbour{}, errTorn
	}
	body, err := ranked.ParseBody(string(b[headBytes:]))
	return neighbour{
		id:       id,
		strength: strength(math.Float64frombits(binary.BigEndian.Uint64(b))),
		version:  schemas.Version(binary.BigEndian.Uint64(b[8:])),
		quality:  math.Float64frombits(binary.BigEndian.Uint64(b[16:])),
		body:     body,
	}, err
}

// find reads one neighbour, nil if there is none.
func find(t table, id schemas.ID) (*neighbour, error) {
	value, err := t.Get(neighbourName(id))
	if err != nil || value == nil {
		return nil, err
	}
	n, err := decodeNeighbour(id, value)
	if err != nil {
		return nil, fmt.Errorf("read neighbour %s: %w", id, err)
	}
	return &n, nil
}

// whole is what a pin's or interest's neighbours are together.
type whole struct {
	strength strength // of everything that was ever added
	kept     uint32   // neighbours
}

// uncounted is the number of neighbours in a row of a time when it did not have one: a trim is due, which counts them.
const uncounted = math.MaxUint32

// deletedPin stands for the number of neighbours of a deleted pin, which gets none any more.
const deletedPin = math.MaxUint32 - 1

func readWhole(t table) (whole, error) {
	value, err := t.Get([]byte{rowAll})
	if err != nil || value == nil {
		return whole{strength: decay.None()}, err
	}
	if len(value) != 8 && len(value) != 12 {
		return whole{}, errTorn
	}
	w := whole{strength(math.Float64frombits(binary.BigEndian.Uint64(value))), uncounted}
	if len(value) == 12 {
		w.kept = binary.BigEndian.Uint32(value[8:])
	}
	return w, nil
}

func (w whole) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 12), math.Float64bits(float64(w.strength)))
	return binary.BigEndian.AppendUint32(b, w.kept)
}

// places returns the ids of the strongest neighbours, most of them.
func places(t table, most int) ([]schemas.ID, error) {
	var ids []schemas.ID
	var bad error
	err := t.Scan(rows.Scan{Prefix: []byte{rowPlace}}, func(name, _ []byte) bool {
		if len(ids) >= most {
			return false
		}
		var id schemas.ID
		id, bad = placeOf(name)
		ids = append(ids, id)
		return bad == nil
	})
	return ids, errors.Join(err, bad)
}

// best reads the strongest neighbours, with their share in all.
func best(t table, most int) ([]neighbour, error) {
	ids, err := places(t, most)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	all, err := readWhole(t)
	if err != nil {
		return nil, err
	}
	list := make([]neighbour, 0, len(ids))
	for _, id := range ids {
		n, err := find(t, id)
		if err != nil {
			return nil, err
		}
		if n == nil {
			return nil, fmt.Errorf("neighbour %s has a place and no row", id)
		}
		n.share = n.strength.Share(all.strength)
		list = append(list, *n)
	}
	return list, nil
}

// neighbours are those of one owner during one callback.
type neighbours struct {
	own   rows.Owner
	cfg   Config
	scale decay.Scale
}

func (t neighbours) best(most int) ([]neighbour, error) { return best(t.own, most) }

// add makes a neighbour stronger, and reports false, having done nothing, if the owner is a deleted pin.
func (t neighbours) add(s *schemas.Neighbour, weight float64, at schemas.Micros) (bool, error) {
	all, err := readWhole(t.own)
	if err != nil || all.kept == deletedPin {
		return false, err
	}
	return true, t.strengthen(all, s, weight, at)
}

func (t neighbours) strengthen(all whole, s *schemas.Neighbour, weight float64, at schemas.Micros) error {
	n, err := find(t.own, s.ID)
	if err != nil {
		return err
	}
	if n == nil {
		n = &neighbour{id: s.ID, strength: decay.None()}
		if all.kept != uncounted {
			all.kept++
		}
	} else if err := t.own.Delete(placeName(n.strength, n.id)); err != nil {
		return err
	}
	gain := decay.Once(weight, at, t.scale)
	n.strength, all.strength = n.strength.Plus(gain), all.strength.Plus(gain)
	n.see(s)
	if err := t.put(n); err != nil {
		return err
	}
	// Beyond the bound by a quarter: the places that a trim passes over cost each neighbour that came since a constant.
	if int(all.kept) > t.cfg.Keep+t.cfg.Keep/4 {
		if all.kept, err = t.trim(); err != nil {
			return err
		}
	}
	return t.own.Put([]byte{rowAll}, all.encode())
}

func (t neighbours) put(n *neighbour) error {
	return errors.Join(t.own.Put(neighbourName(n.id), n.encode()), t.own.Put(placeName(n.strength, n.id), nil))
}

// trim gives up the weakest neighbours beyond the bound, and returns how many are left. What they were worth stays in the
// whole: shares are of all that was seen.
func (t neighbours) trim() (left uint32, err error) {
	ids, err := places(t.own, math.MaxInt)
	if err != nil {
		return 0, err
	}
	most := min(t.cfg.Keep, len(ids))
	for _, id := range ids[most:] {
		n, err := find(t.own, id)
		if err != nil {
			return 0, err
		}
		if n == nil {
			return 0, fmt.Errorf("neighbour %s has a place and no row", id)
		}
		if err := errors.Join(t.own.Delete(placeName(n.strength, id)), t.own.Delete(neighbourName(id))); err != nil {
			return 0, err
		}
	}
	return uint32(most), nil
}

// remove takes one neighbour away, if it is one. What it was worth stays in the whole.
func (t neighbours) remove(id schemas.ID) error {
	n, err := find(t.own, id)
	if err != nil || n == nil {
		return err
	}
	all, err := readWhole(t.own)
	if err != nil {
		return err
	}
	if all.kept != uncounted {
		all.kept--
	}
	return errors.Join(t.own.Delete(placeName(n.strength, id)), t.own.Delete(neighbourName(id)), t.own.Put([]byte{rowAll}, all.encode()))
}

// clear takes all neighbours of a deleted pin away and notes that it is deleted. It returns which they were.
func (t neighbours) clear() ([]schemas.ID, error) {
	ids, err := places(t.own, math.MaxInt)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := t.remove(id); err != nil {
			return nil, err
		}
	}
	return ids, t.own.Put([]byte{rowAll}, whole{decay.None(), deletedPin}.encode())
}

// board is the rows of one board.
type board struct {
	own     rows.Owner
	most    int
	streams *topics.Streams
}

func saveName(s *schemas.BoardSave) []byte {
	b := binary.BigEndian.AppendUint64([]byte{rowSave}, ^(uint64(s.Time) ^ 1<<63)) // newest first, times before 1970 included
	return append(b, s.Pin.ID...)
}

// add remembers a save, and returns the newest others that are of another pin.
func (b board) add(s *schemas.BoardSave) ([]*schemas.BoardSave, error) {
	kept, err := b.saves()
	if err != nil {
		return nil, fmt.Errorf("read saves of %s: %w", s.Board, err)
	}
	if err := b.keep(s, kept); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(kept, func(other *schemas.BoardSave) bool { return other.Pin.ID == s.Pin.ID }), nil
}

// saves reads what is remembered, newest first.
func (b board) saves() ([]*schemas.BoardSave, error) {
	var list []*schemas.BoardSave
	var bad error
	err := b.own.Scan(rows.Scan{Prefix: []byte{rowSave}}, func(row, value []byte) bool {
		s, err := b.streams.BoardSaves.Decode(value)
		if err != nil {
			bad = rows.Unreadable(row, err)
			return false
		}
		list = append(list, s)
		return true
	})
	return list, errors.Join(err, bad)
}

// keep remembers a save, and forgets what is over the bound with it; one older than all that are remembered is not.
func (b board) keep(s *schemas.BoardSave, kept []*schemas.BoardSave) error {
	if b.most == 0 || len(kept) >= b.most && s.Time < kept[b.most-1].Time {
		return nil
	}
	for _, old := range kept[min(b.most-1, len(kept)):] {
		if err := b.own.Delete(saveName(old)); err != nil {
			return err
		}
	}
	return rows.PutRecord(b.own, saveName(s), b.streams.BoardSaves, s)
}
