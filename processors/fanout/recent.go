package fanout

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// recent is one of the publications that a followee keeps.
type recent struct {
	schemas.DeliveredPin
	gone bool // withdrawn: deleted, or no longer the followee's. Kept so that an older version cannot restore the pin
}

func recentOf(p *schemas.Publication, halfLife time.Duration) recent {
	return recent{DeliveredPin: delivered(p, halfLife), gone: p.Deleted || !carries(p.Facets, p.Followee)}
}

func delivered(p *schemas.Publication, halfLife time.Duration) schemas.DeliveredPin {
	return schemas.DeliveredPin{
		Pin: p.Pin, Version: p.Version, Facets: p.Facets, Created: p.Created,
		Score: score.Base(p.Quality, p.Created, halfLife), Deleted: p.Deleted,
	}
}

// carries reports whether a pin with these facets belongs to the followee.
func carries(f schemas.Facets, followee schemas.Followee) bool {
	return schemas.Followee(f.Author) == followee || schemas.Followee(f.Board) == followee ||
		slices.Contains(f.Interests, schemas.InterestID(followee))
}

// row returns the name of the recent's row.
func (r *recent) row() []byte { return recentRow(classOf(r.gone), r.Score, r.Pin) }

// classOf returns the kind of the rows that hold a recent.
func classOf(gone bool) byte {
	if gone {
		return rowGone
	}
	return rowRecent
}

// appendRecent appends the row's value: version (8 bytes), body. The name holds the class, the score and the pin.
func appendRecent(b []byte, r *recent) []byte {
	b = ranked.AppendVersion(b, r.Version)
	return ranked.AppendBody(b, &ranked.Body{Facets: r.Facets, Created: r.Created, Deleted: r.Deleted})
}

// parseRecent parses a row.
func parseRecent(row, value string) (recent, error) {
	const name, head = 1 + ranked.ScoreBytes, 8
	if len(row) <= name || len(value) < head {
		return recent{}, errors.New("parse recent: cut short or malformed")
	}
	body, err := ranked.ParseBody(value[head:])
	if err != nil {
		return recent{}, err
	}
	return recent{
		DeliveredPin: schemas.DeliveredPin{
			Pin: schemas.PinID(row[name:]), Version: ranked.Version(value), Score: ranked.Score(row[1:]),
			Facets: body.Facets, Created: body.Created, Deleted: body.Deleted,
		},
		gone: row[0] == rowGone,
	}, nil
}

// known is the index entry of a pin: its newest version, and the place of its recent.
type known struct {
	version schemas.Version
	score   float64
	gone    bool
	slot    int // noSlot if it is in none
}

const noSlot = -1

// is reports whether the entry describes r.
func (k known) is(r *recent) bool {
	return k.version == r.Version && k.score == r.Score && k.gone == r.gone
}

// row returns the name of the recent's row.
func (k known) row(pin schemas.PinID) []byte { return recentRow(classOf(k.gone), k.score, pin) }

// appendKnown appends the row's value: version, score (8 bytes each), gone (1 byte), and the slot (4 bytes) if there is
// one.
func appendKnown(b []byte, k known) []byte {
	b = binary.BigEndian.AppendUint64(ranked.AppendVersion(b, k.version), math.Float64bits(k.score))
	if k.gone {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	if k.slot == noSlot {
		return b
	}
	return binary.BigEndian.AppendUint32(b, uint32(k.slot))
}

func parseKnown(value []byte) (known, error) {
	const short, long = 17, 21
	if len(value) != short && len(value) != long || value[16] > 1 {
		return known{}, errors.New("parse index of recents: cut short or malformed")
	}
	k := known{
		version: ranked.Version(string(value[:8])),
		score:   math.Float64frombits(binary.BigEndian.Uint64(value[8:])),
		gone:    value[16] == 1,
		slot:    noSlot,
	}
	if len(value) == long {
		k.slot = int(binary.BigEndian.Uint32(value[short:]))
	}
	return k, nil
}

// known returns the index entry of a pin, or nil if there is none.
func (b *book) known(pin schemas.PinID) (*known, error) {
	if !b.published && !b.withdrawn {
		return nil, nil
	}
	value, err := b.Get(rowOf(rowIndex, pin))
	if err != nil || value == nil {
		return nil, err
	}
	k, err := parseKnown(value)
	return &k, err
}

// put writes a recent and its index entry.
func (b *book) put(r *recent, slot int) error {
	if r.gone {
		b.withdrawn = true
	} else {
		b.published = true
	}
	k := known{version: r.Version, score: r.Score, gone: r.gone, slot: slot}
	if err := b.Put(rowOf(rowIndex, r.Pin), appendKnown(nil, k)); err != nil {
		return err
	}
	return b.Put(r.row(), appendRecent(nil, r))
}

// drop deletes a recent and its index entry.
func (b *book) drop(k *known, pin schemas.PinID) error {
	if err := b.Delete(k.row(pin)); err != nil {
		return err
	}
	return b.Delete(rowOf(rowIndex, pin))
}

// remember stores a version of a pin among the recents of a followee that uses no slots.
func (b *book) remember(r *recent, was *known) error {
	if was != nil && (was.score != r.Score || was.gone != r.gone) {
		if err := b.Delete(was.row(r.Pin)); err != nil {
			return err
		}
	}
	return b.put(r, noSlot)
}

// The rows and bytes of a record's bounds that a trim leaves for the end of its step.
const (
	trimFreeRows  = 100
	trimFreeBytes = 64 << 10
)

// trimRecents drops recents over the cap, in as many steps as necessary.
func (g *group) trimRecents(tx *rows.Tx, b *book) error {
	_, more, err := g.trim(tx, b)
	if err != nil || !more {
		return err
	}
	return g.loop(tx, tx.Key(), &schemas.FanoutStep{Kind: schemas.TrimStep})
}

// trim drops recents over the cap, with their index entries. It reports whether it dropped some, and whether there are more
// that do not fit the record. Withdrawn recents have the same cap, counted separately.
func (g *group) trim(tx *rows.Tx, b *book) (some, more bool, err error) {
	for _, class := range []byte{rowRecent, rowGone} {
		surplus, err := b.surplus([]byte{class}, g.cfg.Recents)
		if err != nil {
			return some, false, err
		}
		for _, row := range surplus {
			if rows, bytes := tx.Room(); rows < trimFreeRows || bytes < trimFreeBytes {
				return some, true, nil
			}
			if err := g.dropSurplus(tx, b, row); err != nil {
				return some, false, err
			}
			some = true
		}
	}
	return some, false, nil
}

// dropSurplus drops a recent by its row. It looks up the slot only if any slots are in use.
func (g *group) dropSurplus(tx *rows.Tx, b *book, row string) error {
	pin := schemas.PinID(row[1+ranked.ScoreBytes:])
	k := known{score: ranked.Score(row[1:]), gone: row[0] == rowGone, slot: noSlot}
	if b.here+b.gone > 0 {
		is, err := b.known(pin)
		if err != nil {
			return err
		}
		if err := g.leaveSlot(tx, b, is); err != nil {
			return err
		}
	}
	return b.drop(&k, pin)
}

// surplus returns the names of the rows with a prefix, except the first most rows.
func (b *book) surplus(prefix []byte, most int) (list []string, err error) {
	n := 0
	err = b.Scan(rows.Scan{Prefix: prefix}, func(row, _ []byte) bool {
		if n++; n > most {
			list = append(list, string(row))
		}
		return true
	})
	return list, err
}

// place is a position in a scan of the recents: after a pin of a class. Without a pin, it is the start.
type place struct {
	gone  bool
	score float64
	pin   schemas.PinID
}

func (r *recent) place() place { return place{r.gone, r.Score, r.Pin} }

// placeOf returns the place of a step over the recents.
func placeOf(s *schemas.FanoutStep) place { return place{s.Deleted, s.Score, s.Pin} }

// step returns a step that continues after the place.
func (p place) step(kind schemas.StepKind) *schemas.FanoutStep {
	return &schemas.FanoutStep{Kind: kind, DeliveredPin: schemas.DeliveredPin{Pin: p.pin, Score: p.score, Deleted: p.gone}}
}

// Bounds of one step over the recents. A record's effect is bounded, whatever the length of the ids; see rows.Config.
const (
	givenBytes = 512 << 10 // bytes of the recents to one follower; they are written once

	// Bounds of a step that fills or empties slots. A pin takes up to six rows and records, each with the owner's name, and
	// the pin itself is written twice: 600 KiB in total for the longest ids.
	slotPins  = 100
	slotBytes = 128 << 10
)

// toGive returns the next recents after a place for a backfill, among the first most of each class. The live ones come
// first, best first. The withdrawn ones follow, for a receiver whom the walks did not reach. more reports whether there are
// others.
func (b *book) toGive(at place, most int) (list []recent, more bool, err error) {
	return b.portion(at, most, math.MaxInt, givenBytes)
}

// toShelve is toGive with the bounds of a step that changes slots.
func (b *book) toShelve(at place, most int) (list []recent, more bool, err error) {
	return b.portion(at, most, slotPins, slotBytes)
}

func (b *book) portion(at place, most, pins, bytes int) (list []recent, more bool, err error) {
	size, behind := 0, string(recentRow(classOf(at.gone), at.score, at.pin))
	for _, class := range []byte{rowRecent, rowGone} {
		gone := class == rowGone
		if at.gone && !gone || !gone && !b.published || gone && !b.withdrawn {
			continue
		}
		var bad error
		err = b.Scan(rows.Scan{Prefix: []byte{class}, Limit: most}, func(row, value []byte) bool {
			if at.pin != "" && at.gone == gone && string(row) <= behind {
				return true // counts toward most, as it did in the previous portions
			}
			if more = size > bytes || len(list) == pins; more {
				return false
			}
			var r recent
			r, bad = parseRecent(string(row), string(value))
			list, size = append(list, r), size+len(row)+len(value)
			return bad == nil
		})
		if err = errors.Join(err, bad); err != nil || more {
			return list, more, err
		}
	}
	return list, false, nil
}
