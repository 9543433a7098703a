package pools

import (
	"bytes"
	"slices"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Reports. A feed with seen: reported shows a pin again if the client did not report it in time. Until then, a delivered pin is
// seen, and one row per visit has its unreported pins. A report removes its pins from the row. A timer with the name of the
// row ends the time: the remaining pins are no longer seen. The pools keep their candidates until then; see layout.View.
//
// A report can arrive before its Served, because they are records of different topics. Therefore one row per user of such feeds
// has the newest reported pins that were not seen.

// awaitReports waits for reports of the new entries of a Served until a time.
func awaitReports(own rows.Owner, s *schemas.Served, added *schemas.FeedEntries) {
	if s.ReportWithin <= 0 {
		return
	}
	early := layout.ParseExpired(own.Load([]byte{layout.KindReported}))
	var unreported []byte
	for e := range added.All() {
		if !slices.Contains(early, e.Pin) {
			unreported = layout.AppendIndexed(unreported, e.Pin)
		}
	}
	own.Put([]byte{layout.KindReported}, layout.AppendExpired(nil, early)) // from now on, reports count
	if len(unreported) > 0 {
		row := layout.PositionRow(layout.KindUnreported, added.Last())
		own.Put(row, unreported)
		own.SetTimer((s.Time + schemas.Micros(s.ReportWithin)).Time(), row)
	}
}

// reported applies a report: its pins remain seen.
func (g *group) reported(tx *rows.Tx, i *schemas.ClientImpressions) error {
	own := tx.Own()
	early := own.Load([]byte{layout.KindReported})
	if early == nil { // no feed of the user waits for reports
		return nil
	}
	var unseen []schemas.PinID
	for _, pin := range i.Pins {
		seen, found := rows.Load[layout.Seen](own, rows.Name(layout.KindSeen, pin))
		if found {
			removeReported(own, pin, seen.Position)
		} else {
			unseen = append(unseen, pin)
		}
	}
	if len(unseen) > 0 {
		own.Put([]byte{layout.KindReported}, layout.AppendExpired(early, unseen))
	}
	return nil
}

// removeReported removes a pin from the unreported pins of the visit with a position.
func removeReported(own rows.Owner, pin schemas.PinID, position int64) {
	scan := rows.Scan{Prefix: []byte{layout.KindUnreported}, From: layout.PositionRow(layout.KindUnreported, position), Limit: 1}
	var row, rest []byte
	rows.LoadRows(own, scan, func(name, value []byte) (bool, error) {
		pins := layout.ParseExpired(value)
		if i := slices.Index(pins, pin); i >= 0 {
			row = bytes.Clone(name)
			for _, other := range slices.Delete(pins, i, i+1) {
				rest = layout.AppendIndexed(rest, other)
			}
		}
		return false, nil
	})
	switch {
	case row == nil: // it was reported before, or belongs to a visit without reports
	case rest == nil:
		own.Delete(row) // the timer finds nothing
	default:
		own.Put(row, rest)
	}
}

// showAgain ends the time of the reports of a visit: its unreported pins are no longer seen.
func showAgain(own rows.Owner, row []byte) {
	last := layout.PositionOf(row)
	for _, pin := range layout.ParseExpired(own.Load(row)) {
		name := rows.Name(layout.KindSeen, pin)
		seen, found := rows.Load[layout.Seen](own, name)
		if found && seen.Position <= last { // the oldest seen pins were removed
			own.Delete(name)
			index := layout.PositionRow(layout.KindSeenIndex, last)
			own.Put(index, layout.WithoutIndexed(own.Load(index), pin))
		}
	}
	own.Delete(row)
}

// isReportTimer reports whether a timer is one of awaitReports.
func isReportTimer(name []byte) bool { return len(name) == 1+8 && name[0] == layout.KindUnreported }
