package fanout

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// resume processes a record of fanout-loop.
func (g *group) resume(tx *rows.Tx, c *schemas.Continuation) error {
	if tx.Key() != string(c.Followee) {
		return schemas.Bad(fmt.Sprintf("continuation: key %q: want the followee %q", tx.Key(), c.Followee))
	}
	if g.isDeleted(c.Followee) { // the erasure is running: no row may be added
		tx.Count(dropDeletedUser)
		if c.Backfill != nil { // the pools wait for the answer
			g.deliverTo(tx, nil, edge{c.Backfill.User, 1}, c.Backfill.BackfillID)
		}
		return nil
	}
	withState(tx, func(o *ownerState) {
		switch {
		case c.Walk != nil:
			g.resumeWalk(tx, o, c.Walk)
		case c.Backfill != nil:
			g.resumeBackfill(tx, o, c.Backfill)
		case c.Slots != nil && c.Slots.Free:
			g.freeSlots(tx, o, c.Slots.After)
		case c.Slots != nil:
			g.fillSlots(tx, o, c.Slots.After)
		default:
			tx.Fail(schemas.Bad("continuation: want a walk, a backfill or slots"))
		}
	})
	return nil
}

// continueLater sends a continuation to the owner itself.
func (g *group) continueLater(tx *rows.Tx, c schemas.Continuation) {
	c.Followee = schemas.Followee(tx.Key())
	rows.Send(tx, g.streams.FanoutLoop, tx.Key(), &c)
}

func checkWalk(w *schemas.Walk) error {
	if _, err := schemas.ParsePinID(string(w.Pin.Pin)); err != nil {
		return schemas.Bad("walk: pin: " + err.Error())
	}
	if math.IsNaN(float64(w.Pin.BaseScore)) || math.IsInf(float64(w.Pin.BaseScore), 0) {
		return schemas.Bad(fmt.Sprintf("walk of %s: score %v: want a finite number", w.Pin.Pin, w.Pin.BaseScore))
	}
	return nil
}

// startWalk runs the first step of a walk, or queues the walk while another one runs. The walks of one followee run one
// after the other, so an account with many publications delays only itself.
func (g *group) startWalk(tx *rows.Tx, o *ownerState, w *schemas.Walk) {
	if o.walking {
		g.enqueue(tx, o, w)
	} else {
		g.step(tx, o, w)
	}
}

// resumeWalk runs the next step of the running walk.
func (g *group) resumeWalk(tx *rows.Tx, o *ownerState, w *schemas.Walk) {
	if err := checkWalk(w); err != nil {
		tx.Fail(err)
		return
	}
	if uint64(w.Number) != o.steps {
		tx.Count(dropOldStep)
		return
	}
	o.steps++
	g.step(tx, o, w)
}

// step delivers a pin to the next followers.
func (g *group) step(tx *rows.Tx, o *ownerState, w *schemas.Walk) {
	r := g.recipients.Get().(*recipients)
	defer g.recipients.Put(r)
	r.reset(g.stepEdges(&w.Pin))
	inactive := o.gather(r, w)
	next := o.nextStep(r, w, inactive)
	g.deliver(tx, r, w, next)
	if next != nil {
		o.walking = true
		g.expectStep(tx, o, next)
		return
	}
	if !w.All {
		tx.Effect(effectInactive, o.inactive)
	}
	if o.walking { // otherwise no walk is queued
		g.nextWalk(tx, o)
	}
}

// stepEdges returns the number of followers of a step. It is lower for a pin with long ids, because the rows of a delivery must
// fit the bounds of one record of the pools.
func (g *group) stepEdges(pin *schemas.DeliveredPin) int {
	const mostBytes, owner = 768 << 10, 300
	return min(g.cfg.StepFollowers, 1+mostBytes/(owner+len(pin.Pin)+pin.MaxEncodedBytes()))
}

// gather collects the next followers, and reports whether the last one is inactive.
func (o *ownerState) gather(r *recipients, w *schemas.Walk) (inactive bool) {
	if o.followers == 0 { // most boards have none, and an empty scan is as expensive as any other
		return w.Inactive
	}
	if !w.Inactive {
		o.gatherFrom(r, rowLive, w.After)
	}
	if r.more || !w.All || o.inactive == 0 {
		return w.Inactive
	}
	after, before := schemas.UserID(""), r.n
	if w.Inactive {
		after = w.After
	}
	o.gatherFrom(r, rowInactive, after)
	return w.Inactive || r.n > before
}

// gatherFrom collects the followers of edges of a kind after a follower. With an empty follower it starts at the first.
func (o *ownerState) gatherFrom(r *recipients, kind byte, after schemas.UserID) {
	scan := rows.Scan{Prefix: []byte{kind}}
	if after != "" {
		scan.From = append(rows.Name(kind, after), 0) // the first name after it
	}
	rows.LoadRows(o.Owner, scan, func(row, value []byte) (bool, error) {
		weight, err := parseEdge(value)
		if err != nil {
			return false, rows.Unreadable(row, err)
		}
		return r.add(row[1:], weight), nil
	})
}

// nextStep returns the step to run after the deliveries to r have been applied, or nil if the walk ends. While the followee
// switches to push, a walk ends with a step without followers, because the pools have then applied the previous delivery.
func (o *ownerState) nextStep(r *recipients, w *schemas.Walk, inactive bool) *schemas.Walk {
	if !r.more && (!o.pushing || r.n == 0) {
		return nil
	}
	o.steps++
	next := *w
	next.After, next.Inactive, next.Number = schemas.UserID(r.last), inactive, int64(o.steps)
	return &next
}

// deliver delivers a pin to the followers of a step. One of the deliveries carries the next step, which the pools send
// after they have applied that delivery. Each step uses the delivery of another partition, so a partition without
// progress delays few steps.
func (g *group) deliver(tx *rows.Tx, r *recipients, w *schemas.Walk, next *schemas.Walk) {
	followee := schemas.Followee(tx.Key())
	d := schemas.Delivery{Source: followee.Source(), Pins: []schemas.DeliveredPin{w.Pin}}
	carrier := -1
	if next != nil {
		carrier = r.firstFrom(int(uint64(next.Number) % uint64(g.partitions)))
	}
	for partition := range r.shares {
		if d.Users, d.Weights = r.share(partition); len(d.Users) == 0 {
			continue
		}
		d.Continuation = nil
		if partition == carrier {
			value, err := g.streams.FanoutLoop.Encode(&schemas.Continuation{Followee: followee, Walk: next})
			tx.Fail(err)
			d.Continuation = value
		}
		rows.SendTo(tx, g.streams.Deliveries, int32(partition), tx.Key(), &d)
	}
}
