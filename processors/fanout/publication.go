package fanout

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// publish remembers a version of a pin and begins its walk.
func (g *group) publish(tx *rows.Tx, p *schemas.Publication) error {
	if err := checkPublication(tx.Key(), p); err != nil {
		return err
	}
	r := recentOf(p, g.cfg.HalfLife)
	fresh, err := g.remember(tx.Own(), &r)
	if err != nil {
		return err
	}
	if !fresh {
		tx.Count(dropOldVersion)
		return nil
	}
	if ranked.TrimDue(ranked.Hash(p.Followee), ranked.Hash(p.Pin)+uint64(p.Version), g.cfg.Recents) {
		if err := g.trim(tx.Own()); err != nil {
			return err
		}
	}
	return g.walk(tx, &schemas.FanoutStep{Publication: *p}, &r.DeliveredPin)
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

// remember puts a pin among the recents unless a version at least as new is known.
func (g *group) remember(own rows.Owner, r *recent) (fresh bool, err error) {
	index := rowOf(rowIndex, r.Pin)
	value, err := own.Get(index)
	if err != nil {
		return false, err
	}
	if value != nil {
		was, err := parseKnown(value)
		if err != nil || r.Version <= was.version {
			return false, err
		}
		if was.score != r.Score {
			if err := own.Delete(recentRow(was.score, r.Pin)); err != nil {
				return false, err
			}
		}
	}
	if err := own.Put(index, appendKnown(nil, known{version: r.Version, score: r.Score})); err != nil {
		return false, err
	}
	return true, own.Put(recentRow(r.Score, r.Pin), appendRecent(nil, r))
}

// trim drops the recents over the cap, with what is known of their versions.
func (g *group) trim(own rows.Owner) error {
	keep := surplus{cap: g.cfg.Recents}
	var drop []schemas.PinID
	var names [][]byte
	err := own.Scan(rows.Scan{Prefix: []byte{rowRecent}}, func(row, value []byte) bool {
		if len(value) > 0 && keep.over(value[0] == 1) {
			names = append(names, append([]byte(nil), row...))
			drop = append(drop, schemas.PinID(row[1+ranked.ScoreBytes:]))
		}
		return true
	})
	for i := 0; err == nil && i < len(drop); i++ {
		if err = own.Delete(names[i]); err == nil {
			err = own.Delete(rowOf(rowIndex, drop[i]))
		}
	}
	return err
}

// walkOn takes a walk up again.
func (g *group) walkOn(tx *rows.Tx, s *schemas.FanoutStep) error {
	if err := checkPublication(tx.Key(), &s.Publication); err != nil {
		return err
	}
	pin := delivered(&s.Publication, g.cfg.HalfLife)
	return g.walk(tx, s, &pin)
}

// walk delivers a pin to the next followers, and leaves the others to the loop.
func (g *group) walk(tx *rows.Tx, s *schemas.FanoutStep, pin *schemas.DeliveredPin) error {
	st := g.steps.Get().(*step)
	defer g.steps.Put(st)
	st.reset()
	err := tx.Own().Scan(walkFrom(s.After), func(row, value []byte) bool {
		return st.add(row[1:], liveWeight(value))
	})
	if err != nil {
		return err
	}
	d := schemas.Delivery{Source: s.Followee.Source(), Pins: []schemas.DeliveredPin{*pin}}
	for p := range st.shares {
		if !st.delivery(p, &d) {
			continue
		}
		if err := g.deliver(tx, int32(p), &d); err != nil {
			return err
		}
	}
	if !st.more {
		return nil
	}
	next := schemas.FanoutStep{Publication: s.Publication, After: schemas.UserID(st.last)}
	return rows.Send(tx, g.streams.FanoutLoop, tx.Key(), &next)
}

// walkFrom scans the live edges of the followers after one, "" for all.
func walkFrom(after schemas.UserID) rows.Scan {
	scan := rows.Scan{Prefix: []byte{rowLive}}
	if after != "" {
		scan.From = append(rowOf(rowLive, after), 0) // the first name that can follow it
	}
	return scan
}

func (g *group) deliver(tx *rows.Tx, partition int32, d *schemas.Delivery) error {
	value, err := g.streams.Deliveries.Encode(d)
	if err != nil {
		return fmt.Errorf("encode %s: %w", topics.Deliveries, err)
	}
	return tx.EmitTo(topics.Deliveries, partition, tx.Key(), value)
}

// backfill delivers the recents to one follower.
func (g *group) backfill(tx *rows.Tx, user schemas.UserID, weight float32) error {
	pins, err := g.best(tx.Own())
	if err != nil {
		return err
	}
	d := schemas.Delivery{Source: schemas.Followee(tx.Key()).Source(), Users: []schemas.UserID{user}}
	if weight != 1 {
		d.Weights = []float32{weight}
	}
	for _, d.Pins = range portions(pins) {
		if err := g.deliver(tx, g.partition(user), &d); err != nil {
			return err
		}
	}
	return nil
}

// best returns the best recents that are not gone, as many as are kept.
func (g *group) best(own rows.Owner) ([]schemas.DeliveredPin, error) {
	var pins []schemas.DeliveredPin
	var bad error
	err := own.Scan(rows.Scan{Prefix: []byte{rowRecent}}, func(row, value []byte) bool {
		r, err := parseRecent(string(row), string(value))
		if err != nil {
			bad = err
			return false
		}
		if !r.gone {
			pins = append(pins, r.DeliveredPin)
		}
		return len(pins) < g.cfg.Recents
	})
	if err == nil {
		err = bad
	}
	return pins, err
}
