package fanout

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Pull. The recents of a pulled followee are in numbered slots. Each slot is a record of recents-pulled, which every
// process that reads pools holds in memory. There are at most Config.MaxRecentPublications live pins, and as many
// withdrawn ones, which withdraw the pin from readers that have received it. A new pin takes the slot of the lowest
// one.
//
//	mode      state              publication        when the followers cross the threshold
//	push      –                  walk               → filling: put the recents into slots, in steps
//	filling   slotted, filling   slot and walk      → pull when all are in slots
//	pull      slotted, pulled    slot               → pushing: walk the recents, one after the other
//	pushing   slotted, pushing   slot and walk      → pull immediately, because the slots are complete; or freeing after the last walk
//	freeing   slots in use       walk               → push when the slots are empty
//
// A pin that is both pushed and pulled meanwhile has one effect. The steps visit the recents by pin, so they miss none
// when a replay changes the order of the recents. A publication that arrives meanwhile takes or frees a slot itself.

// updateMode switches a followee to the mode for its number of followers. A pulled followee stays pulled until it is 10 %
// below the threshold, so a single follower who toggles does not switch it repeatedly.
func (g *group) updateMode(tx *rows.Tx, o *ownerState) {
	pull := o.followers > g.cfg.PullThreshold || o.pulled && o.followers > g.cfg.PullThreshold-g.cfg.PullThreshold/10
	switch {
	case pull == o.pulled, o.filling, o.freeing(): // a switch in progress finishes first
	case !pull:
		o.pulled, o.pushing, o.pushed = false, true, ""
		tx.Effect(effectToPush, 1)
		if !o.walking {
			g.nextWalk(tx, o)
		}
	case o.pushing:
		o.pulled, o.pushing = true, false
	default:
		o.slotted, o.filling = true, true
		tx.Effect(effectToPull, 1)
		g.fillSlots(tx, o, "")
	}
}

// freeing reports whether slots are being emptied after a switch to push.
func (s *state) freeing() bool { return !s.slotted && s.slotsLive+s.slotsWithdrawn > 0 }

// Bounds of a step that fills slots. A pin takes up to six rows and records, each with the owner's name, and the pin
// itself is written twice: 600 KiB in total for the longest ids.
const (
	fillPins  = 100
	fillBytes = 128 << 10
)

// fillSlots puts the recents of the pins after one into slots, for a switch to pull. If all slots are in use, the remaining
// recents are the lowest ones.
func (g *group) fillSlots(tx *rows.Tx, o *ownerState, after schemas.PinID) {
	if after == "" && g.trimRecents(tx, o) { // recents over the cap are trimmed first, in separate steps
		g.continueLater(tx, schemas.Continuation{Slots: &schemas.SlotStep{}})
		return
	}
	list := o.index(after, fillPins)
	filled, size := 0, 0
	for ; filled < len(list) && size <= fillBytes; filled++ {
		size += g.fillSlot(tx, o, list[filled].pin)
	}
	if filled < len(list) || filled == fillPins {
		g.continueLater(tx, schemas.Continuation{Slots: &schemas.SlotStep{After: list[filled-1].pin}})
		return
	}
	o.filling, o.pulled = false, true
	g.updateMode(tx, o)
}

// fillSlot puts a recent into a slot and returns its size. It does nothing if the recent is in a slot, or was evicted.
func (g *group) fillSlot(tx *rows.Tx, o *ownerState, pin schemas.PinID) (size int) {
	k := o.known(pin)
	if k == nil || k.slot != noSlot {
		return 0
	}
	r := o.recentAt(pin, k)
	g.putInSlot(tx, o, r, k)
	return r.MaxEncodedBytes()
}

// nextPush returns the walk of the next recent of a switch to push. After the last one it frees the slots and returns nil.
func (g *group) nextPush(tx *rows.Tx, o *ownerState) *schemas.Walk {
	list := o.index(o.pushed, 1)
	if len(list) == 0 {
		o.pushing, o.pushed, o.slotted = false, "", false
		g.continueLater(tx, schemas.Continuation{Slots: &schemas.SlotStep{Free: true}})
		return nil
	}
	o.pushed = list[0].pin
	r := o.recentAt(o.pushed, &list[0].known)
	return &schemas.Walk{Pin: r.DeliveredPin, All: true}
}

// count returns the number of recents in slots, live or withdrawn.
func (o *ownerState) count(withdrawn bool) *int {
	if withdrawn {
		return &o.slotsWithdrawn
	}
	return &o.slotsLive
}

// maxEvicted bounds the recents that one record drops for a better one. More than one is dropped only after the cap was
// lowered; later records drop the rest.
const maxEvicted = 100

// putInSlot stores a version of a pin among the recents of a followee that uses slots. stored is its index entry, or nil.
func (g *group) putInSlot(tx *rows.Tx, o *ownerState, r *recent, stored *known) {
	slot := noSlot
	if stored != nil {
		o.drop(stored, r.Pin)
		if slot = stored.slot; slot != noSlot {
			*o.count(stored.withdrawn)--
		}
	}
	for n := 0; *o.count(r.withdrawn) >= g.cfg.MaxRecentPublications && n < maxEvicted; n++ {
		lowest := o.evictLowest(r)
		if lowest == nil { // all recents in slots are better
			g.freeSlot(tx, o, slot)
			return
		}
		if lowest.slot == noSlot {
			continue
		}
		*o.count(r.withdrawn)--
		if slot == noSlot {
			slot = lowest.slot
		} else {
			g.freeSlot(tx, o, lowest.slot)
		}
	}
	if slot == noSlot {
		slot = o.takeFreeSlot()
	}
	*o.count(r.withdrawn)++
	g.writeSlot(tx, o, r, slot)
}

// evictLowest drops the lowest recent of r's kind if r is better, and returns its index entry. It returns nil if r is not
// better.
func (o *ownerState) evictLowest(r *recent) *known {
	row := o.first(rows.Scan{Prefix: []byte{kindOf(r.withdrawn)}, Reverse: true})
	if row == nil || bytes.Compare(r.row(), row) >= 0 {
		return nil
	}
	pin := schemas.PinID(row[1+ranked.ScoreBytes:])
	k := o.known(pin)
	if k == nil {
		return nil
	}
	o.drop(k, pin)
	return k
}

// takeFreeSlot returns a free slot.
func (o *ownerState) takeFreeSlot() (slot int) {
	row := o.first(rows.Scan{Prefix: []byte{rowFree}})
	if len(row) == 5 {
		o.Delete(row)
		return int(binary.BigEndian.Uint32(row[1:]))
	}
	o.slots++
	return o.slots - 1
}

// writeSlot writes a recent into a slot and publishes it to recents-pulled.
func (g *group) writeSlot(tx *rows.Tx, o *ownerState, r *recent, slot int) {
	o.put(r, slot)
	p := schemas.PulledPin{Followee: schemas.Followee(tx.Key()), Slot: int32(slot), Withdrawn: r.withdrawn, DeliveredPin: r.DeliveredPin}
	rows.SendTo(tx, g.streams.RecentsPulled, tx.Partition(), schemas.PulledKey(p.Followee, p.Slot), &p)
}

// freeSlot empties a slot and keeps it for reuse.
func (g *group) freeSlot(tx *rows.Tx, o *ownerState, slot int) {
	if slot == noSlot {
		return
	}
	o.Put(freeRow(slot), []byte{})
	g.deleteSlot(tx, slot)
}

// deleteSlot removes a slot from recents-pulled.
func (g *group) deleteSlot(tx *rows.Tx, slot int) {
	key := schemas.PulledKey(schemas.Followee(tx.Key()), int32(slot))
	tx.EmitTo(topics.RecentsPulled, tx.Partition(), key, nil)
}

// leaveSlot empties the slot of a recent, if it has one.
func (g *group) leaveSlot(tx *rows.Tx, o *ownerState, k *known) {
	if k == nil || k.slot == noSlot {
		return
	}
	slot := k.slot
	k.slot = noSlot
	*o.count(k.withdrawn)--
	g.freeSlot(tx, o, slot)
}

// freePins bounds a step that empties slots. Each pin takes three rows and records.
const freePins = 250

// freeSlots empties the slots of the pins after one. Publications that arrive meanwhile take no slot. The slots stay in the
// list of free slots and are reused at the next switch to pull.
func (g *group) freeSlots(tx *rows.Tx, o *ownerState, after schemas.PinID) {
	if !o.freeing() {
		return // publications have emptied the last slots
	}
	list := o.index(after, freePins)
	for i := range list {
		if list[i].slot != noSlot {
			g.leaveSlot(tx, o, &list[i].known)
			rows.PutValue(o.Owner, rows.Name(rowIndex, list[i].pin), &list[i].known)
		}
	}
	if len(list) < freePins {
		o.slotsLive, o.slotsWithdrawn = 0, 0
		return
	}
	g.continueLater(tx, schemas.Continuation{Slots: &schemas.SlotStep{Free: true, After: list[freePins-1].pin}})
}

// indexed is an entry of the index and its pin.
type indexed struct {
	pin schemas.PinID
	known
}

// index returns at most limit entries of the index, by pin, after a pin. An empty pin starts at the first.
func (o *ownerState) index(after schemas.PinID, limit int) (list []indexed) {
	scan := rows.Scan{Prefix: []byte{rowIndex}, Limit: limit}
	if after != "" {
		scan.From = append(rows.Name(rowIndex, after), 0)
	}
	rows.LoadRows(o.Owner, scan, func(row, value []byte) (bool, error) {
		k, err := packed.Decode[known](value)
		if err != nil {
			return false, rows.Unreadable(row, err)
		}
		list = append(list, indexed{schemas.PinID(row[1:]), k})
		return true, nil
	})
	return list
}

// recentAt returns the recent of an index entry.
func (o *ownerState) recentAt(pin schemas.PinID, k *known) *recent {
	row := k.row(pin)
	value := o.Load(row)
	r, bad := parseRecent(string(row), string(value))
	if bad != nil {
		o.Fail(fmt.Errorf("read recent of %s: %w", pin, rows.Unreadable(row, bad)))
	}
	return &r
}
