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
	if g.isGone(p.Followee) {
		return g.refuse(tx, p)
	}
	return onBook(tx, func(b *book) error {
		if err := g.settle(tx, b); err != nil {
			return err
		}
		r := recentOf(p, g.cfg.HalfLife)
		was, err := b.known(p.Pin)
		if err != nil {
			return err
		}
		if p.Replayed {
			return g.replace(tx, b, &r, was)
		}
		if was != nil && r.Version <= was.version {
			tx.Count(dropOldVersion)
			return nil
		}
		if err := g.keep(tx, b, &r, was); err != nil {
			return err
		}
		if err := b.own(tx.Key(), &r, was); err != nil {
			return err
		}
		if b.pulled {
			tx.Effect(effectPulled, b.followers)
			return nil
		}
		// No pool has a new pin yet, so inactive followers can wait for the backfill. A change or a withdrawal must reach
		// every pool that may hold the pin.
		first := was == nil && schemas.Micros(p.Version) == p.Created
		return g.take(tx, b, &schemas.FanoutStep{Kind: schemas.WalkStep, Followee: p.Followee, DeliveredPin: r.DeliveredPin, All: !first})
	})
}

// replace stores a replayed version with its recomputed score. It delivers nothing: the next backfill has the new place.
func (g *group) replace(tx *rows.Tx, b *book, r *recent, was *known) error {
	if was != nil && r.Version < was.version {
		tx.Count(dropOldVersion)
		return nil
	}
	if was != nil && was.is(r) {
		return nil
	}
	tx.Effect(effectReplaced, 1)
	if err := g.keep(tx, b, r, was); err != nil {
		return err
	}
	return b.own(tx.Key(), r, was)
}

func checkPublication(key string, p *schemas.Publication) error {
	if key != string(p.Followee) {
		return schemas.Bad(fmt.Sprintf("publication: key %q is not the followee %q", key, p.Followee))
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

// keep stores a version of a pin among the recents.
func (g *group) keep(tx *rows.Tx, b *book, r *recent, was *known) error {
	if b.slotted {
		return g.shelve(tx, b, r, was)
	}
	if err := g.leaveSlot(tx, b, was); err != nil {
		return err
	}
	if err := b.remember(r, was); err != nil {
		return err
	}
	if ranked.TrimDue(ranked.Hash(tx.Key()), ranked.Hash(r.Pin)+uint64(r.Version), g.cfg.Recents) {
		return g.loop(tx, tx.Key(), &schemas.FanoutStep{Kind: schemas.TrimStep})
	}
	return nil
}

// backfill delivers the recents to one follower, including withdrawn ones: the follower may have received an earlier
// version, over this edge or another. The last delivery carries asked, unless it is 0.
func (g *group) backfill(tx *rows.Tx, b *book, e edge, asked schemas.Micros) error {
	if b.pulled {
		return g.hand(tx, nil, e, asked)
	}
	return g.give(tx, b, place{}, e, asked)
}

// give delivers the recents after a place to one follower.
func (g *group) give(tx *rows.Tx, b *book, at place, e edge, asked schemas.Micros) error {
	list, more, err := b.toGive(at, g.cfg.Recents)
	if err != nil {
		return err
	}
	pins := make([]schemas.DeliveredPin, len(list))
	for i := range list {
		pins[i] = list[i].DeliveredPin
	}
	if !more {
		return g.hand(tx, pins, e, asked)
	}
	if err := g.hand(tx, pins, e, 0); err != nil {
		return err
	}
	on := list[len(list)-1].place().step(schemas.GiveStep)
	on.Users, on.Weights, on.Asked = []schemas.UserID{e.user}, []float32{e.weight}, asked
	return g.loop(tx, tx.Key(), on)
}

// hand delivers pins to one follower. With a nonzero asked it sends at least one delivery, because the last one carries
// asked.
func (g *group) hand(tx *rows.Tx, pins []schemas.DeliveredPin, e edge, asked schemas.Micros) error {
	d := schemas.Delivery{Source: schemas.Followee(tx.Key()).Source(), Users: []schemas.UserID{e.user}}
	if e.weight != 1 {
		d.Weights = []float32{e.weight}
	}
	parts := schemas.DeliveryPortions(pins)
	if len(parts) == 0 && asked != 0 {
		parts = append(parts, nil)
	}
	for i, part := range parts {
		if d.Pins = part; i == len(parts)-1 {
			d.Asked = asked
		}
		if err := rows.SendTo(tx, g.streams.Deliveries, g.partition(e.user), tx.Key(), &d); err != nil {
			return err
		}
	}
	return nil
}
