package fanout

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// publish stores a version of a pin and starts its walk.
func (g *group) publish(tx *rows.Tx, p *schemas.Publication) error {
	if err := checkPublication(p); err != nil {
		return err
	}
	if g.isDeleted(p.Followee) {
		g.rejectDeleted(tx, p)
		return nil
	}
	withState(tx, func(o *ownerState) {
		g.updateMode(tx, o)
		r := recentOf(p, g.cfg.ScoreHalfLife)
		stored := o.known(p.Pin)
		if p.Replayed {
			g.replace(tx, o, &r, stored)
			return
		}
		if stored != nil && r.Version <= stored.version {
			tx.Count(dropOldVersion)
			return
		}
		o.updateOwn(tx.Key(), &r, stored)
		// No pool has a new pin yet, so inactive followers can wait for the backfill. A change or a withdrawal must reach
		// every pool that may hold the pin.
		first := stored == nil && schemas.Micros(p.Version) == p.Created
		g.keep(tx, o, &r, stored)
		if o.pulled {
			tx.Effect(effectPulled, o.followers)
		} else {
			g.startWalk(tx, o, &schemas.Walk{Pin: r.DeliveredPin, All: !first})
		}
		g.trimIfDue(tx, o, &r)
	})
	return nil
}

// replace stores a replayed version with its recomputed score. It delivers nothing: the next backfill has the new place.
func (g *group) replace(tx *rows.Tx, o *ownerState, r *recent, stored *known) {
	if stored != nil && r.Version < stored.version {
		tx.Count(dropOldVersion)
		return
	}
	if stored != nil && stored.describes(r) {
		return
	}
	tx.Effect(effectReplaced, 1)
	o.updateOwn(tx.Key(), r, stored)
	g.keep(tx, o, r, stored)
	g.trimIfDue(tx, o, r)
}

func checkPublication(p *schemas.Publication) error {
	if _, err := schemas.ParseFollowee(string(p.Followee)); err != nil {
		return schemas.Bad("publication: followee: " + err.Error())
	}
	if _, err := schemas.ParsePinID(string(p.Pin)); err != nil {
		return schemas.Bad("publication: pin: " + err.Error())
	}
	if !(p.Quality > 0) || math.IsInf(p.Quality, 0) {
		return schemas.Bad(fmt.Sprintf("publication: quality %v: want a positive number", p.Quality))
	}
	return nil
}

// keep stores a version of a pin among the recents. stored is the pin's index entry. When keep empties its slot, it sets the
// slot of stored to noSlot.
func (g *group) keep(tx *rows.Tx, o *ownerState, r *recent, stored *known) {
	if o.slotted {
		g.putInSlot(tx, o, r, stored)
		return
	}
	g.leaveSlot(tx, o, stored)
	if stored != nil && (stored.score != r.BaseScore || stored.withdrawn != r.withdrawn) {
		o.Delete(stored.row(r.Pin))
	}
	o.put(r, noSlot)
}

// trimIfDue trims the recents of a followee that uses no slots, about once in Config.MaxRecentPublications publications.
func (g *group) trimIfDue(tx *rows.Tx, o *ownerState, r *recent) {
	if !o.slotted && ranked.TrimDue(ranked.Hash(tx.Key()), ranked.Hash(r.Pin)+uint64(r.Version), g.cfg.MaxRecentPublications) {
		g.trimRecents(tx, o)
	}
}
