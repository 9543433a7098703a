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

// Pull. The recents of a pulled followee are in numbered slots. Each slot is a record of recents-pulled, which every
// process that reads pools holds in memory. There are at most Config.Recents live pins, and as many withdrawn ones, so that
// a reader who once received a pin learns of its withdrawal. A new pin takes the slot of the lowest one.
//
// To switch to pull, the followee fills the slots and then starts no more walks. To switch to push, it walks every edge
// with every recent, and frees the slots when the pools have applied the last of these deliveries. Meanwhile a pin can be
// both pushed and pulled, which is harmless.

// settle switches a followee to the mode that its number of followers requires. A pulled followee stays pulled until it is
// 10 % below the threshold, so that a single follower who toggles does not switch it repeatedly.
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
		return nil // the switch in progress finishes first
	case b.slotted: // the switch to push is still in progress
		b.pulled = true
		return nil
	}
	b.slotted, b.filling = true, true
	tx.Effect(effectToPull, 1)
	return g.fillSlots(tx, b, place{})
}

// freeing reports whether slots are being emptied for good.
func (s *state) freeing() bool { return !s.slotted && s.here+s.gone > 0 }

// fillSlots puts the recents after a place into slots. A publication that arrives meanwhile takes a slot itself and is also
// walked. Recents that find no free slot then are the lowest ones.
func (g *group) fillSlots(tx *rows.Tx, b *book, at place) error {
	if at == (place{}) { // recents over the cap are trimmed first, in separate steps
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

// count returns the counter of the recents of a class that are in slots.
func (b *book) count(gone bool) *int {
	if gone {
		return &b.gone
	}
	return &b.here
}

func (g *group) toPush(tx *rows.Tx, b *book) error {
	b.pulled = false
	tx.Effect(effectToPush, 1)
	b.back++ // counts the listing itself, until it is complete
	return g.bringBack(tx, b, place{})
}

// bringBack queues walks for the recents after a place.
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

// broughtBack handles the end of a walk of a switch to push. After the last one it frees the slots.
func (g *group) broughtBack(tx *rows.Tx, b *book) error {
	b.back = max(0, b.back-1)
	if b.back > 0 || b.pulled || b.filling || !b.slotted {
		return nil
	}
	b.slotted = false
	return g.freeSlots(tx, b, "")
}

// mostGivingWay bounds the recents that one record drops for a better one. More than one is dropped only after the cap was
// lowered; later records drop the rest.
const mostGivingWay = 100

// shelve stores a version of a pin among the recents of a followee that uses slots.
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
		if lowest == nil { // all recents in slots are better
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

// giveWay drops the lowest recent of r's class if r is better, and returns its index entry. It returns nil if r is not
// better.
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

// takeFree returns a free slot.
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

// fill writes a recent into a slot and publishes it to recents-pulled.
func (g *group) fill(tx *rows.Tx, b *book, r *recent, slot int) error {
	if err := b.put(r, slot); err != nil {
		return err
	}
	p := schemas.PulledPin{Followee: schemas.Followee(tx.Key()), Slot: int32(slot), Gone: r.gone, DeliveredPin: r.DeliveredPin}
	return rows.SendTo(tx, g.streams.RecentsPulled, tx.Partition(), schemas.PulledKey(p.Followee, p.Slot), &p)
}

// free empties a slot and keeps it for reuse.
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

// freedAtOnce bounds a step that empties slots. Each pin takes three rows and records.
const freedAtOnce = 250

// freeSlots empties the slots of the pins after one, for good. Publications that arrive meanwhile take no slot. The slots
// stay in the list of free slots and are reused at the next switch to pull.
func (g *group) freeSlots(tx *rows.Tx, b *book, after schemas.PinID) error {
	if !b.freeing() {
		return nil // publications have emptied the last slots
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

// indexed returns the next pins of the index after one, and their entries. An empty pin starts at the first.
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
