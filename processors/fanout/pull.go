package fanout

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Pull. The recents of a pulled followee stand in numbered slots, each a record of recents-pulled that every process
// which reads pools holds: at most Recents of them, and as many for what is gone, so that a reader who was once
// delivered to learns that, too. A new one takes the slot of the lowest.
//
// To pull: fill the slots, then begin no more walks. To push: walk every edge with every recent, and free the slots when
// the pools have applied the last of it. In between a pin is there twice, which is harmless.

// settle brings a followee to the mode that its number of followers asks for. A little below the threshold it stays
// pulled, so that one who comes and goes does not switch it to and fro.
func (g *group) settle(tx *rows.Tx, b *book) error {
	if !b.spread && b.followers > g.cfg.SpreadAbove && g.partitions > 1 {
		if err := g.spreadOut(tx, b); err != nil {
			return err
		}
	}
	pull := b.followers > g.cfg.PullAbove || b.pulled && b.followers > g.cfg.PullAbove-g.cfg.PullAbove/10
	switch {
	case pull && !b.pulled:
		return g.toPull(tx, b)
	case !pull && b.pulled:
		return g.toPush(tx, b)
	}
	return nil
}

func (g *group) toPull(tx *rows.Tx, b *book) error {
	switch {
	case b.filling || b.freeing():
		return nil // what is under way ends first
	case b.slotted: // not yet brought back
		b.pulled = true
		return nil
	}
	b.slotted, b.filling = true, true
	tx.Effect(effectToPull, 1)
	return g.fillSlots(tx, b, place{})
}

// freeing says whether slots are being emptied for good.
func (s *state) freeing() bool { return !s.slotted && s.here+s.gone > 0 }

// fillSlots puts the recents behind a place into slots. A publication meanwhile takes one by itself, and is walked, too;
// those that find no room then are the lowest.
func (g *group) fillSlots(tx *rows.Tx, b *book, at place) error {
	if at == (place{}) { // what is over the cap goes first, in steps of its own
		some, _, err := g.trim(tx, b)
		if err != nil {
			return err
		}
		if some {
			return g.loop(tx, tx.Key(), at.step(schemas.FillStep))
		}
	}
	list, more, err := b.toShelve(at, g.cfg.Recents)
	if err != nil {
		return err
	}
	for i := range list {
		k, err := b.known(list[i].Pin)
		if err != nil {
			return err
		}
		if k == nil || k.slot != noSlot {
			continue
		}
		if err := g.shelve(tx, b, &list[i], k); err != nil {
			return err
		}
	}
	if more {
		return g.loop(tx, tx.Key(), list[len(list)-1].place().step(schemas.FillStep))
	}
	b.filling, b.pulled = false, true
	return g.settle(tx, b)
}

// count is how many recents of a class stand in slots.
func (b *book) count(gone bool) *int {
	if gone {
		return &b.gone
	}
	return &b.here
}

func (g *group) toPush(tx *rows.Tx, b *book) error {
	b.pulled = false
	tx.Effect(effectToPush, 1)
	b.back++ // one for finding the others
	return g.bringBack(tx, b, place{})
}

// bringBack has the recents behind a place wait for their walks.
func (g *group) bringBack(tx *rows.Tx, b *book, at place) error {
	list, more, err := b.toShelve(at, g.cfg.Recents)
	if err != nil {
		return err
	}
	for i := range list {
		s := &schemas.FanoutStep{
			Kind: schemas.WalkStep, Followee: schemas.Followee(tx.Key()), DeliveredPin: list[i].DeliveredPin, All: true, Back: true,
		}
		if err := g.enqueue(tx, b, s); err != nil {
			return err
		}
	}
	b.back += len(list)
	if !b.busy {
		if err := g.nextTurn(tx, b); err != nil {
			return err
		}
	}
	if more {
		return g.loop(tx, tx.Key(), list[len(list)-1].place().step(schemas.BringStep))
	}
	return g.broughtBack(tx, b)
}

// broughtBack notes the end of a walk that brings back what was pulled.
func (g *group) broughtBack(tx *rows.Tx, b *book) error {
	b.back = max(0, b.back-1)
	if b.back > 0 || b.pulled || b.filling || !b.slotted {
		return nil
	}
	b.slotted = false
	return g.freeSlots(tx, b, "")
}

// mostGivingWay bounds the recents that give way to one, of which there are more only when the cap was lowered: the next
// ones go on.
const mostGivingWay = 100

// shelve puts a version of a pin among the recents of a followee that stand in slots.
func (g *group) shelve(tx *rows.Tx, b *book, r *recent, was *known) error {
	slot := noSlot
	if was != nil {
		if err := b.drop(was, r.Pin); err != nil {
			return err
		}
		if slot = was.slot; slot != noSlot {
			*b.count(was.gone)--
		}
	}
	for n := 0; *b.count(r.gone) >= g.cfg.Recents && n < mostGivingWay; n++ {
		lowest, err := b.giveWay(r)
		if err != nil {
			return err
		}
		if lowest == nil { // all that are there are better
			return g.free(tx, b, slot)
		}
		if lowest.slot == noSlot {
			continue
		}
		*b.count(r.gone)--
		if slot == noSlot {
			slot = lowest.slot
		} else if err := g.free(tx, b, lowest.slot); err != nil {
			return err
		}
	}
	if slot == noSlot {
		var err error
		if slot, err = b.takeFree(); err != nil {
			return err
		}
	}
	*b.count(r.gone)++
	return g.fill(tx, b, r, slot)
}

// giveWay drops the lowest recent of the same class if r is better, and returns what was known of it; nil if r is not.
func (b *book) giveWay(r *recent) (*known, error) {
	var row []byte
	err := b.Scan(rows.Scan{Prefix: []byte{classOf(r.gone)}, Reverse: true, Limit: 1}, func(name, _ []byte) bool {
		row = append(row, name...)
		return true
	})
	if err != nil || row == nil || bytes.Compare(r.row(), row) >= 0 {
		return nil, err
	}
	pin := schemas.PinID(row[1+ranked.ScoreBytes:])
	k, err := b.known(pin)
	if err != nil || k == nil {
		return nil, err
	}
	return k, b.drop(k, pin)
}

// takeFree returns a slot where nothing stands.
func (b *book) takeFree() (slot int, err error) {
	var row []byte
	err = b.Scan(rows.Scan{Prefix: []byte{rowFree}, Limit: 1}, func(name, _ []byte) bool {
		row = append(row, name...)
		return true
	})
	if err != nil {
		return noSlot, err
	}
	if len(row) == 5 {
		return int(binary.BigEndian.Uint32(row[1:])), b.Delete(row)
	}
	b.slots++
	return b.slots - 1, nil
}

// fill puts a recent into a slot, and tells who reads pools.
func (g *group) fill(tx *rows.Tx, b *book, r *recent, slot int) error {
	if err := b.put(r, slot); err != nil {
		return err
	}
	p := schemas.PulledPin{Followee: schemas.Followee(tx.Key()), Slot: int32(slot), Gone: r.gone, DeliveredPin: r.DeliveredPin}
	return rows.SendTo(tx, g.streams.RecentsPulled, tx.Partition(), schemas.PulledKey(p.Followee, p.Slot), &p)
}

// free empties a slot for the next one.
func (g *group) free(tx *rows.Tx, b *book, slot int) error {
	if slot == noSlot {
		return nil
	}
	if err := b.Put(freeRow(slot), []byte{}); err != nil {
		return err
	}
	return g.vacate(tx, slot)
}

func (g *group) vacate(tx *rows.Tx, slot int) error {
	key := schemas.PulledKey(schemas.Followee(tx.Key()), int32(slot))
	return tx.EmitTo(topics.RecentsPulled, tx.Partition(), key, nil)
}

// leaveSlot empties the slot of a recent, if it has one.
func (g *group) leaveSlot(tx *rows.Tx, b *book, k *known) error {
	if k == nil || k.slot == noSlot {
		return nil
	}
	slot := k.slot
	k.slot = noSlot
	*b.count(k.gone)--
	return g.free(tx, b, slot)
}

// freedAtOnce bounds a step that empties slots, which takes three rows and records a pin.
const freedAtOnce = 250

// freeSlots empties the slots of the pins behind one, for good. What is published meanwhile takes none. The slots stay known
// as free: the next time, the same ones are taken.
func (g *group) freeSlots(tx *rows.Tx, b *book, after schemas.PinID) error {
	if !b.freeing() {
		return nil // publications have taken the last ones' places
	}
	pins, index, err := b.indexed(after, freedAtOnce)
	if err != nil {
		return err
	}
	for i, pin := range pins {
		if index[i].slot == noSlot {
			continue
		}
		if err := g.leaveSlot(tx, b, &index[i]); err != nil {
			return err
		}
		if err := b.Put(rowOf(rowIndex, pin), appendKnown(nil, index[i])); err != nil {
			return err
		}
	}
	if len(pins) < freedAtOnce {
		b.here, b.gone = 0, 0
		return nil
	}
	return g.loop(tx, tx.Key(), place{pin: pins[len(pins)-1]}.step(schemas.FreeStep))
}

// indexed returns the next pins of the index behind one, "" for the first, and what is known of them.
func (b *book) indexed(after schemas.PinID, most int) (pins []schemas.PinID, index []known, err error) {
	scan := rows.Scan{Prefix: []byte{rowIndex}, Limit: most}
	if after != "" {
		scan.From = append(rowOf(rowIndex, after), 0)
	}
	var bad error
	err = b.Scan(scan, func(row, value []byte) bool {
		var k known
		k, bad = parseKnown(value)
		pins, index = append(pins, schemas.PinID(row[1:])), append(index, k)
		return bad == nil
	})
	return pins, index, errors.Join(err, bad)
}
