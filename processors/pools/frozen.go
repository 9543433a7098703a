package pools

import (
	"bytes"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Each visit appends one row of entries to the materialized feed: the record that is sent to the stores. The row is named by
// the last of its positions. Therefore the row of a position is the first row at or above it, and the rows up to a head
// contain nothing newer. A row is deleted when its last entry is no longer among the newest Config.Frozen.

// freeze writes and sends the entries of a visit, and deletes the rows that have become too old.
func (g *group) freeze(tx *rows.Tx, own rows.Owner, st *layout.State, added *schemas.FeedEntries) error {
	err := rows.PutAndSend(own, layout.PositionRow(layout.KindMaterialized, added.Last()), g.streams.FeedEntries, tx.Key(), added)
	if err != nil {
		return err
	}
	return thaw(own, st, st.Head-int64(g.cfg.Frozen))
}

// thaw deletes the rows up to a position. It starts at st.Thawed, because a scan over deleted rows is slow.
func thaw(own rows.Owner, st *layout.State, to int64) error {
	if to <= st.Thawed {
		return nil
	}
	var old [][]byte
	scan := rows.Scan{Prefix: []byte{layout.KindMaterialized}, From: layout.PositionRow(layout.KindMaterialized, st.Thawed+1)}
	err := own.Scan(scan, func(name, _ []byte) bool {
		if layout.PositionOf(name) > to {
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
