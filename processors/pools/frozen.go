package pools

import (
	"bytes"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Each visit appends one row of entries to the materialized feed: the record that is sent to the stores. The row is named by
// the last of its positions. Therefore the row of a position is the first row at or above it, and the rows up to a head
// contain nothing newer. A row is deleted when its last entry is no longer among the newest Config.Frozen.

// freeze writes and sends the entries of a visit, and deletes the rows that have become too old.
func (g *group) freeze(tx *rows.Tx, own rows.Owner, st *state, added *schemas.FeedEntries) error {
	err := rows.PutAndSend(own, positionRow(rowFrozen, added.Last()), g.streams.FeedEntries, tx.Key(), added)
	if err != nil {
		return err
	}
	return thaw(own, st, st.Head-int64(g.cfg.Frozen))
}

// thaw deletes the rows up to a position. It starts at st.Thawed, because a scan over deleted rows is slow.
func thaw(own rows.Owner, st *state, to int64) error {
	if to <= st.Thawed {
		return nil
	}
	var old [][]byte
	scan := rows.Scan{Prefix: []byte{rowFrozen}, From: positionRow(rowFrozen, st.Thawed+1)}
	err := own.Scan(scan, func(name, _ []byte) bool {
		if positionOf(name) > to {
			return false
		}
		old = append(old, bytes.Clone(name))
		return true
	})
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := own.Delete(name); err != nil {
			return err
		}
	}
	st.Thawed = to
	return nil
}

// frozenFrom returns at most most materialized entries, newest first, starting at the position head.
func frozenFrom(t table, s topics.Stream[schemas.FeedEntries], head int64, most int) ([]schemas.FeedEntry, error) {
	list := []schemas.FeedEntry{}
	var bad error
	scan := rows.Scan{Prefix: []byte{rowFrozen}, From: positionRow(rowFrozen, head), Reverse: true}
	err := t.Scan(scan, func(_, value []byte) bool {
		var f *schemas.FeedEntries
		if f, bad = s.Decode(value); bad != nil {
			return false
		}
		for p := f.Last(); p >= f.First && len(list) < most; p-- {
			list = append(list, f.At(p))
		}
		return len(list) < most
	})
	if err == nil {
		err = bad
	}
	return list, err
}

// frozenAt returns the materialized entry at a position, or nil if it is no longer kept.
func frozenAt(t table, s topics.Stream[schemas.FeedEntries], position int64) (*schemas.FeedEntry, error) {
	var row []byte
	scan := rows.Scan{Prefix: []byte{rowFrozen}, From: positionRow(rowFrozen, position), Limit: 1}
	err := t.Scan(scan, func(_, value []byte) bool {
		row = slices.Clone(value)
		return false
	})
	if err != nil || row == nil {
		return nil, err
	}
	f, err := s.Decode(row)
	if err != nil || position < f.First {
		return nil, err
	}
	e := f.At(position)
	return &e, nil
}
