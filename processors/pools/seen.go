package pools

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// seenOf returns the items that the user has seen before.
func seenOf(own rows.Owner, items []schemas.ServedItem) (map[schemas.PinID]bool, error) {
	seen := make(map[schemas.PinID]bool, len(items))
	for i := range items {
		value, err := own.Get(layout.RowName(layout.KindSeen, items[i].Pin))
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
		at := layout.Seen{Position: e.Position, Time: e.Time, Created: e.Created}
		if err := own.Put(layout.RowName(layout.KindSeen, e.Pin), layout.AppendSeen(nil, at)); err != nil {
			return err
		}
		visit = layout.AppendIndexed(visit, e.Pin)
	}
	return own.Put(layout.PositionRow(layout.KindSeenIndex, added.Last()), visit)
}

// forget removes the oldest seen pins beyond the cap. From then on, candidates created before the oldest remaining one was
// shown are refused, because the removed pins are among them. The creation times of the removed pins count, too: because
// clocks differ, a pin can be created up to five minutes after it was shown.
func forget(tx *rows.Tx, own rows.Owner, st *layout.State, most int64) error {
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
	oldest, err := layout.IndexedBetween(own, st.Unseen+1, to+1)
	if err != nil {
		return err
	}
	for _, p := range oldest {
		was, err := seenAs(own, p.Pin)
		switch {
		case err != nil:
			return err
		case p.Position > to: // it stays
			st.Refuse(was.Time)
			continue
		}
		st.Refuse(was.Created + 1)
		if err := unsee(own, p); err != nil {
			return err
		}
	}
	st.Unseen = to
	return nil
}

// unsee removes a pin, and its index row if it is the last pin of the visit.
func unsee(own rows.Owner, p layout.IndexedPin) error {
	if err := own.Delete(layout.RowName(layout.KindSeen, p.Pin)); err != nil || !p.Last {
		return err
	}
	return own.Delete(layout.PositionRow(layout.KindSeenIndex, p.Position))
}

// seenAs returns the seen row of a pin of the index.
func seenAs(t layout.Table, pin schemas.PinID) (layout.Seen, error) {
	value, err := t.Get(layout.RowName(layout.KindSeen, pin))
	if err != nil {
		return layout.Seen{}, err
	}
	at, err := layout.ParseSeen(value)
	if err != nil {
		return layout.Seen{}, fmt.Errorf("%s of the index: %w", pin, err)
	}
	return at, nil
}
