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
	if err := checkPublication(tx.Key(), p); err != nil {
		return err
	}
	if g.isDeleted(p.Followee) {
		return g.rejectDeleted(tx, p)
	}
	return withState(tx, func(o *ownerState) error {
		if err := g.updateMode(tx, o); err != nil {
			return err
		}
		r := recentOf(p, g.cfg.ScoreHalfLife)
		stored, err := o.known(p.Pin)
		if err != nil {
			return err
		}
		if p.Replayed {
			return g.replace(tx, o, &r, stored)
		}
		if stored != nil && r.Version <= stored.version {
			tx.Count(dropOldVersion)
			return nil
		}
		if err := o.updateOwn(tx.Key(), &r, stored); err != nil {
			return err
		}
		// No pool has a new pin yet, so inactive followers can wait for the backfill. A change or a withdrawal must reach
		// every pool that may hold the pin.
		first := stored == nil && schemas.Micros(p.Version) == p.Created
		if err := g.keep(tx, o, &r, stored); err != nil {
			return err
		}
		if o.pulled {
			tx.Effect(effectPulled, o.followers)
		} else if err := g.startWalk(tx, o, &schemas.Walk{Pin: r.DeliveredPin, All: !first}); err != nil {
			return err
		}
		return g.trimIfDue(tx, o, &r)
	})
}

// replace stores a replayed version with its recomputed score. It delivers nothing: the next backfill has the new place.
func (g *group) replace(tx *rows.Tx, o *ownerState, r *recent, stored *known) error {
	if stored != nil && r.Version < stored.version {
		tx.Count(dropOldVersion)
		return nil
	}
	if stored != nil && stored.describes(r) {
		return nil
	}
	tx.Effect(effectReplaced, 1)
	if err := o.updateOwn(tx.Key(), r, stored); err != nil {
		return err
	}
	if err := g.keep(tx, o, r, stored); err != nil {
		return err
	}
	return g.trimIfDue(tx, o, r)
}

func checkPublication(key string, p *schemas.Publication) error {
	if key != string(p.Followee) {
		return schemas.Bad(fmt.Sprintf("publication: key %q: want the followee %q", key, p.Followee))
	}
	if _, err := schemas.ParseFollowee(key); err != nil {
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
func (g *group) keep(tx *rows.Tx, o *ownerState, r *recent, stored *known) error {
	if o.slotted {
		return g.putInSlot(tx, o, r, stored)
	}
	if err := g.leaveSlot(tx, o, stored); err != nil {
		return err
	}
	if stored != nil && (stored.score != r.BaseScore || stored.withdrawn != r.withdrawn) {
		if err := o.Delete(stored.row(r.Pin)); err != nil {
			return err
		}
	}
	return o.put(r, noSlot)
}

// trimIfDue trims the recents of a followee that uses no slots, about once in Config.MaxRecentPublications publications.
func (g *group) trimIfDue(tx *rows.Tx, o *ownerState, r *recent) error {
	if o.slotted || !ranked.TrimDue(ranked.Hash(tx.Key()), ranked.Hash(r.Pin)+uint64(r.Version), g.cfg.MaxRecentPublications) {
		return nil
	}
	_, err := g.trimRecents(tx, o)
	return err
}
