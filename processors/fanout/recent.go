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

// recent is a pin among what a followee published last.
type recent struct {
	schemas.DeliveredPin
	gone bool // deleted, or no longer the followee's: kept so that an older version cannot come back
}

// recentOf returns the recent of a publication.
func recentOf(p *schemas.Publication, halfLife time.Duration) recent {
	return recent{DeliveredPin: delivered(p, halfLife), gone: p.Deleted || !carries(p.Facets, p.Followee)}
}

func delivered(p *schemas.Publication, halfLife time.Duration) schemas.DeliveredPin {
	return schemas.DeliveredPin{
		Pin: p.Pin, Version: p.Version, Facets: p.Facets, Created: p.Created,
		Score: score.Base(p.Quality, p.Created, halfLife), Deleted: p.Deleted,
	}
}

// carries says whether a pin of these facets belongs to the followee.
func carries(f schemas.Facets, followee schemas.Followee) bool {
	return schemas.Followee(f.Author) == followee || schemas.Followee(f.Board) == followee ||
		slices.Contains(f.Interests, schemas.InterestID(followee))
}

// row is the name of the recent's row.
func (r *recent) row() []byte { return recentRow(classOf(r.gone), r.Score, r.Pin) }

// classOf is the kind of rows in which a recent stands.
func classOf(gone bool) byte {
	if gone {
		return rowGone
	}
	return rowRecent
}

// appendRecent appends the row's value: version (8 bytes), body. Class, pin and score are in its name.
func appendRecent(b []byte, r *recent) []byte {
	b = ranked.AppendVersion(b, r.Version)
	return ranked.AppendBody(b, &ranked.Body{Facets: r.Facets, Created: r.Created, Deleted: r.Deleted})
}

// parseRecent reads a row.
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

// known is what the index says of a pin: the version seen last, and where its recent stands.
type known struct {
	version schemas.Version
	score   float64
	gone    bool
	slot    int // noSlot: in none
}

const noSlot = -1

// is says whether a recent is what is known already.
func (k known) is(r *recent) bool {
	return k.version == r.Version && k.score == r.Score && k.gone == r.gone
}

// row is the name of the recent's row.
func (k known) row(pin schemas.PinID) []byte { return recentRow(classOf(k.gone), k.score, pin) }

// appendKnown appends the row's value: version, score (8 bytes each), gone (1 byte), and the slot if there is one (4).
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

// known returns what is known of a pin, nil for nothing.
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

// put writes a recent and its entry in the index.
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

// drop deletes a recent and its entry in the index.
func (b *book) drop(k *known, pin schemas.PinID) error {
	if err := b.Delete(k.row(pin)); err != nil {
		return err
	}
	return b.Delete(rowOf(rowIndex, pin))
}

// remember puts a version of a pin among the recents of a followee that stands in no slots.
func (b *book) remember(r *recent, was *known) error {
	if was != nil && (was.score != r.Score || was.gone != r.gone) {
		if err := b.Delete(was.row(r.Pin)); err != nil {
			return err
		}
	}
	return b.put(r, noSlot)
}

// What a trim leaves of the bounds of a record to what ends its step.
const (
	trimFreeRows  = 100
	trimFreeBytes = 64 << 10
)

// trimRecents drops recents over the cap, in as many steps as it takes.
func (g *group) trimRecents(tx *rows.Tx, b *book) error {
	_, more, err := g.trim(tx, b)
	if err != nil || !more {
		return err
	}
	return g.loop(tx, tx.Key(), &schemas.FanoutStep{Kind: schemas.TrimStep})
}

// trim drops recents over the cap, with what is known of their versions: some, and more if there was no room for all.
// Those that are gone have the same cap for themselves.
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

// dropSurplus drops a recent by its row. Its slot is looked up only while there are any.
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

// surplus returns the rows with a prefix behind the first most of them.
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

// place is where a walk over the recents stands: behind a pin of a class; without a pin, at the beginning.
type place struct {
	gone  bool
	score float64
	pin   schemas.PinID
}

func (r *recent) place() place { return place{r.gone, r.Score, r.Pin} }

// placeOf reads the place that a step over recents stands at.
func placeOf(s *schemas.FanoutStep) place { return place{s.Deleted, s.Score, s.Pin} }

// step returns a step that goes on behind the place.
func (p place) step(kind schemas.StepKind) *schemas.FanoutStep {
	return &schemas.FanoutStep{Kind: kind, DeliveredPin: schemas.DeliveredPin{Pin: p.pin, Score: p.score, Deleted: p.gone}}
}

// How much of the recents is handled at once: a record's effect is bounded, see rows.Config, whatever the length of the ids
// in it.
const (
	givenBytes = 512 << 10 // to one follower: it is written once

	// Of what comes into slots, or out of them: a pin takes up to six rows and records, each with the owner's name, and is
	// itself written twice, which makes 600 KiB of the longest.
	slotPins  = 100
	slotBytes = 128 << 10
)

// toGive returns the next recents behind a place of the best of each class, so many of it whatever came before: the best
// first, then those that are gone, which somebody needs to know who had no part in the walks. more says that there are others.
func (b *book) toGive(at place, most int) (list []recent, more bool, err error) {
	return b.portion(at, most, math.MaxInt, givenBytes)
}

// toShelve is toGive for what changes slots.
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
				return true // it counts among the best, as other portions had it
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
