package pools

import (
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Effects of deferral, in candidates.
const (
	effectDeferred = "deferred"          // deferred to a later session
	effectCameBack = "deferred_came_out" // shown after a deferral
)

// defers counts the deferred candidates of a Served and drops those that were deferred for too long. before is the memory of
// the previous Served.
func (g *group) defers(tx *rows.Tx, own rows.Owner, before *schemas.Memory, s *schemas.Served) error {
	held := make(map[schemas.PinID]bool, len(before.Deferred))
	for _, d := range before.Deferred {
		held[d.Pin] = true
	}
	fresh, back := 0, 0
	for _, d := range s.Deferred {
		if !held[d.Pin] {
			fresh++
		}
	}
	for i := range s.Items {
		if held[s.Items[i].Pin] {
			back++
		}
	}
	tx.Effect(effectDeferred, fresh)
	tx.Effect(effectCameBack, back)
	if len(s.Expired) == 0 {
		return nil
	}
	if err := g.giveUp(tx, own, s.Expired); err != nil {
		return err
	}
	return noteExpired(own, s.Expired)
}

// giveUp drops the candidates of pins in all sources. Like all dropped candidates, they return with a new delivery.
func (g *group) giveUp(tx *rows.Tx, own rows.Owner, pins []schemas.PinID) error {
	gone, counted := make(map[schemas.PinID]bool, len(pins)), map[schemas.PinID]bool{}
	for _, pin := range pins {
		gone[pin] = true
	}
	list, err := layout.Sources(own)
	if err != nil {
		return err
	}
	for _, source := range list {
		all, err := layout.CandidateRows(own, source)
		if err != nil {
			return err
		}
		for i := range all {
			if !gone[all[i].Pin] {
				continue
			}
			if !counted[all[i].Pin] { // a pin may have several rows
				counted[all[i].Pin] = true
				tx.Count(dropDeferred)
			}
			if err := own.Delete([]byte(all[i].Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteExpired remembers pins that were deferred for too long. Only readers know which pins are pulled, so it remembers all of
// them, including those that had a row: a pin of a pushed author is often pulled from an interest.
func noteExpired(own rows.Owner, pins []schemas.PinID) error {
	value, err := own.Get([]byte{layout.KindExpired})
	if err != nil {
		return err
	}
	return own.Put([]byte{layout.KindExpired}, layout.AppendExpired(value, pins))
}
