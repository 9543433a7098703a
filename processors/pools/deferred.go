package pools

import (
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Effects of deferring, in candidates.
const (
	effectDeferred = "deferred"          // held back for a later session
	effectCameBack = "deferred_came_out" // shown after all
)

// defers counts what a Served says of deferred candidates, and drops those that were given up. before is what was
// remembered until then.
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
	return noteGivenUp(own, s.Expired)
}

// giveUp drops the candidates of pins, whatever their source. As all that is dropped they return with a new delivery.
func (g *group) giveUp(tx *rows.Tx, own rows.Owner, pins []schemas.PinID) error {
	gone, counted := make(map[schemas.PinID]bool, len(pins)), map[schemas.PinID]bool{}
	for _, pin := range pins {
		gone[pin] = true
	}
	list, err := sources(own)
	if err != nil {
		return err
	}
	for _, source := range list {
		all, err := candidateRows(own, source)
		if err != nil {
			return err
		}
		for i := range all {
			if !gone[all[i].pin] {
				continue
			}
			if !counted[all[i].pin] { // it may have several rows
				counted[all[i].pin] = true
				tx.Count(dropDeferred)
			}
			if err := own.Delete([]byte(all[i].name)); err != nil {
				return err
			}
		}
	}
	return nil
}
