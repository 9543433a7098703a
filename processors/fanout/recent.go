package fanout

import (
	"errors"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// recent is a stored publication of a followee.
type recent struct {
	schemas.DeliveredPin
	withdrawn bool // deleted, or no longer the followee's. Kept so that an older version cannot restore the pin
}

func recentOf(p *schemas.Publication, halfLife time.Duration) recent {
	return recent{
		DeliveredPin: schemas.DeliveredPin{
			Pin: p.Pin, Version: p.Version, PinContent: p.PinContent,
			BaseScore: score.Base(p.Quality, p.Created, halfLife),
		},
		withdrawn: isWithdrawn(p.Deleted, p.Facets, p.Followee),
	}
}

// isWithdrawn reports whether a pin is deleted or does not belong to the followee.
func isWithdrawn(deleted bool, f schemas.Facets, followee schemas.Followee) bool {
	return deleted || !f.Has(followee)
}

// row returns the name of the recent's row.
func (r *recent) row() []byte { return recentRow(kindOf(r.withdrawn), r.BaseScore, r.Pin) }

// kindOf returns the kind of the rows that hold a recent.
func kindOf(withdrawn bool) byte {
	if withdrawn {
		return rowWithdrawn
	}
	return rowRecent
}

// appendRecent appends the row's value: version (8 bytes), body. The name holds the kind, the score and the pin.
func appendRecent(b []byte, r *recent) []byte {
	b = ranked.AppendVersion(b, r.Version)
	return ranked.AppendBody(b, &r.PinContent)
}

// parseRecent parses a row.
func parseRecent(row, value string) (recent, error) {
	const name, head = 1 + ranked.ScoreBytes, 8
	if len(row) <= name || len(value) < head {
		return recent{}, errors.New("parse recent: truncated or malformed")
	}
	body, err := ranked.ParseBody(value[head:])
	if err != nil {
		return recent{}, err
	}
	return recent{
		DeliveredPin: schemas.DeliveredPin{
			Pin: schemas.PinID(row[name:]), Version: ranked.Version(value), BaseScore: ranked.Score[schemas.BaseScore](row[1:]),
			PinContent: body,
		},
		withdrawn: row[0] == rowWithdrawn,
	}, nil
}

// known is the index entry of a pin: its newest version, and the place of its recent.
type known struct {
	version   schemas.Version
	score     schemas.BaseScore
	withdrawn bool
	slot      int // noSlot if it is in none
}

const noSlot = -1

// Pack implements packed.Row.
func (k *known) Pack(p *packed.Packer) {
	p.Version(1)
	p.Flags(&k.withdrawn)
	packed.Int(p, &k.slot)
	packed.Int(p, &k.version)
	packed.Float(p, &k.score)
}

// describes reports whether the entry is that of r.
func (k known) describes(r *recent) bool {
	return k.version == r.Version && k.score == r.BaseScore && k.withdrawn == r.withdrawn
}

// row returns the name of the recent's row.
func (k known) row(pin schemas.PinID) []byte { return recentRow(kindOf(k.withdrawn), k.score, pin) }

// known returns the index entry of a pin, or nil if there is none.
func (o *ownerState) known(pin schemas.PinID) *known {
	if !o.published && !o.withdrawn {
		return nil
	}
	k, found := rows.Load[known](o.Owner, rows.Name(rowIndex, pin))
	if !found {
		return nil
	}
	return &k
}

// put writes a recent and its index entry.
func (o *ownerState) put(r *recent, slot int) {
	if r.withdrawn {
		o.withdrawn = true
	} else {
		o.published = true
	}
	k := known{version: r.Version, score: r.BaseScore, withdrawn: r.withdrawn, slot: slot}
	rows.PutValue(o.Owner, rows.Name(rowIndex, r.Pin), &k)
	o.Put(r.row(), appendRecent(nil, r))
}

// drop deletes a recent and its index entry.
func (o *ownerState) drop(k *known, pin schemas.PinID) {
	o.Delete(k.row(pin))
	o.Delete(rows.Name(rowIndex, pin))
}

// trimRecents drops the recents over the cap until the record is full. more reports whether others remain. Live and
// withdrawn recents have separate caps of the same size.
func (g *group) trimRecents(tx *rows.Tx, o *ownerState) (more bool) {
	for _, kind := range []byte{rowRecent, rowWithdrawn} {
		if o.trim(tx, []byte{kind}, g.cfg.MaxRecentPublications, func(row string) { g.dropRecent(tx, o, row) }) {
			return true
		}
	}
	return false
}

// dropRecent drops a recent by its row. It looks up the slot only if any slots are in use.
func (g *group) dropRecent(tx *rows.Tx, o *ownerState, row string) {
	pin := schemas.PinID(row[1+ranked.ScoreBytes:])
	k := &known{score: ranked.Score[schemas.BaseScore](row[1:]), withdrawn: row[0] == rowWithdrawn, slot: noSlot}
	if o.slotsLive+o.slotsWithdrawn > 0 {
		g.leaveSlot(tx, o, o.known(pin))
	}
	o.drop(k, pin)
}

// trim calls drop with the names of the rows with a prefix, except the first limit rows, until the record is full. more
// reports whether others remain.
func (o *ownerState) trim(tx *rows.Tx, prefix []byte, limit int, drop func(row string)) (more bool) {
	n := 0
	rows.LoadRows(o.Owner, rows.Scan{Prefix: prefix}, func(row, _ []byte) (bool, error) {
		if n++; n <= limit {
			return true, nil
		}
		if more = !tx.HasRoom(); !more {
			drop(string(row))
		}
		return !more, nil
	})
	return more
}

// first returns the name of the first row of a scan, or nil if there is none.
func (o *ownerState) first(scan rows.Scan) (row []byte) {
	scan.Limit = 1
	rows.LoadRows(o.Owner, scan, func(name, _ []byte) (bool, error) {
		row = append(row, name...)
		return false, nil
	})
	return row
}
