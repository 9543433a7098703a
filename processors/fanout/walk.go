package fanout

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// step processes a record of fanout-loop.
func (g *group) step(tx *rows.Tx, s *schemas.FanoutStep) error {
	if err := checkStep(tx.Key(), s); err != nil {
		return err
	}
	if g.isGone(s.Followee) { // its edges are being erased: nothing may be added after that
		tx.Count(dropDeletedUser)
		return g.giveNoMore(tx, s)
	}
	return onBook(tx, func(b *book) error {
		switch s.Kind {
		case schemas.EdgesStep:
			return b.changeEdges(s)
		case schemas.MoveStep:
			return g.move(tx, b)
		case schemas.DoneStep:
			return g.broughtBack(tx, b)
		case schemas.GiveStep:
			return g.give(tx, b, placeOf(s), edge{s.Users[0], s.Weights[0]}, s.Asked)
		case schemas.FillStep:
			return g.fillSlots(tx, b, placeOf(s))
		case schemas.BringStep:
			return g.bringBack(tx, b, placeOf(s))
		case schemas.FreeStep:
			return g.freeSlots(tx, b, s.Pin)
		case schemas.TrimStep:
			return g.trimRecents(tx, b)
		}
		return g.take(tx, b, s)
	})
}

// giveNoMore ends the backfill of a reactivated user whose followee is deleted.
func (g *group) giveNoMore(tx *rows.Tx, s *schemas.FanoutStep) error {
	if s.Kind != schemas.GiveStep {
		return nil
	}
	return g.hand(tx, nil, edge{s.Users[0], 1}, s.Asked)
}

func checkStep(key string, s *schemas.FanoutStep) error {
	followee, shard := followeeOf(key)
	if s.Followee != followee {
		return schemas.Bad(fmt.Sprintf("step: key %q is not of the followee %q", key, s.Followee))
	}
	switch s.Kind {
	case schemas.WalkStep:
		return checkWalk(s)
	case schemas.EdgesStep:
		if !shard || len(s.Weights) > 0 && len(s.Weights) != len(s.Users) {
			return schemas.Bad(fmt.Sprintf("step at %q: %d weights for %d edges", key, len(s.Weights), len(s.Users)))
		}
	case schemas.GiveStep, schemas.MoveStep, schemas.DoneStep, schemas.FillStep, schemas.BringStep,
		schemas.FreeStep, schemas.TrimStep:
		if shard {
			return schemas.Bad(fmt.Sprintf("step %q at a shard", s.Kind))
		}
		if s.Kind == schemas.GiveStep && (len(s.Users) != 1 || len(s.Weights) != 1) {
			return schemas.Bad(fmt.Sprintf("step %q for %d followers with %d weights", s.Kind, len(s.Users), len(s.Weights)))
		}
	default:
		return schemas.Bad(fmt.Sprintf("unknown step %q", s.Kind))
	}
	return nil
}

func checkWalk(s *schemas.FanoutStep) error {
	if _, err := schemas.ParseFollowee(string(s.Followee)); err != nil {
		return schemas.Bad("walk: followee: " + err.Error())
	}
	if _, err := schemas.ParsePinID(string(s.Pin)); err != nil {
		return schemas.Bad("walk: pin: " + err.Error())
	}
	if math.IsNaN(s.Score) || math.IsInf(s.Score, 0) {
		return schemas.Bad(fmt.Sprintf("walk of %s: score %v", s.Pin, s.Score))
	}
	return nil
}

// take runs a step of a walk, or queues the walk while another one runs. Walks of one owner take turns, so that an account
// that publishes a lot delays only itself.
func (g *group) take(tx *rows.Tx, b *book, s *schemas.FanoutStep) error {
	if b.busy && !s.Turn {
		return g.enqueue(tx, b, s)
	}
	if s.Number != 0 {
		if uint64(s.Number) != b.steps {
			tx.Count(dropOldStep)
			return nil
		}
		b.steps++
	}
	st := g.steps.Get().(*step)
	defer g.steps.Put(st)
	st.reset(g.stepEdges(&s.DeliveredPin))
	inAway, err := b.gather(st, s)
	if err != nil {
		return err
	}
	then, err := g.then(tx, b, s, st, inAway)
	if err != nil {
		return err
	}
	if err := g.bring(tx, b, st, s, then); err != nil {
		return err
	}
	if st.more {
		b.busy = true
		return g.expectStep(tx, b, then.step)
	}
	return g.finish(tx, b, s)
}

// stepEdges returns the number of followers of a step. It is lower for a pin with long ids, because the rows that a
// delivery writes must fit the bounds of one record of the pools.
func (g *group) stepEdges(pin *schemas.DeliveredPin) int {
	const mostBytes, owner = 768 << 10, 300
	return min(g.cfg.StepEdges, 1+mostBytes/(owner+len(pin.Pin)+pin.MaxEncodedBytes()))
}

// gather collects the next followers, and reports whether the last one is inactive.
func (b *book) gather(st *step, s *schemas.FanoutStep) (inAway bool, err error) {
	if b.edgeless() { // most boards have none, and an empty scan costs as much as any other
		return s.Away, nil
	}
	visit := func(row, value []byte) bool { return st.add(row[1:], liveWeight(value)) }
	if !s.Away {
		err = b.Scan(walkFrom(rowLive, s.After), visit)
	}
	if err != nil || st.more || !s.All || b.away == 0 {
		return s.Away, err
	}
	after, before := schemas.UserID(""), st.n
	if s.Away {
		after = s.After
	}
	err = b.Scan(walkFrom(rowAway, after), visit)
	return s.Away || st.n > before, err
}

// edgeless reports whether the owner certainly has no edges.
func (b *book) edgeless() bool { return !b.shard && (b.followers == 0 || b.spread && !b.moving) }

// walkFrom returns a scan of the edges of a kind after those of a follower. An empty follower starts at the first.
func walkFrom(kind byte, after schemas.UserID) rows.Scan {
	scan := rows.Scan{Prefix: []byte{kind}}
	if after != "" {
		scan.From = append(rowOf(kind, after), 0) // the first name after it
	}
	return scan
}

// then returns the step to send after the deliveries of a step have been applied: the next step, or the DoneStep of a walk
// that switches a followee to push. It returns nil if nothing follows.
func (g *group) then(tx *rows.Tx, b *book, s *schemas.FanoutStep, st *step, inAway bool) (*successor, error) {
	followee, _ := followeeOf(tx.Key())
	next := successor{owner: tx.Key()}
	switch {
	case st.more:
		b.steps++
		on := *s
		on.After, on.Away, on.Turn, on.Number = schemas.UserID(st.last), inAway, true, int64(b.steps)
		next.step = &on
	case s.Back && (b.shard || !b.spread):
		next = successor{string(followee), &schemas.FanoutStep{Kind: schemas.DoneStep, Followee: followee}}
	default:
		return nil, nil
	}
	return &next, nil
}

// successor is the step that follows another one, and the owner that receives it.
type successor struct {
	owner string
	step  *schemas.FanoutStep
}

// bring delivers a pin to the followers of a step. One of the deliveries carries then, which the pools send after they have
// applied that delivery. Each step uses the delivery of another partition, so that a partition that makes no progress
// delays few steps. Without any delivery, bring sends then itself.
func (g *group) bring(tx *rows.Tx, b *book, st *step, s *schemas.FanoutStep, then *successor) error {
	carrier := st.shareFrom(int(b.steps % uint64(g.partitions)))
	if carrier < 0 {
		if then == nil {
			return nil
		}
		return g.loop(tx, then.owner, then.step)
	}
	d := schemas.Delivery{Source: s.Followee.Source(), Pins: []schemas.DeliveredPin{s.DeliveredPin}}
	for partition := range st.shares {
		if d.Users, d.Weights = st.share(partition); len(d.Users) == 0 {
			continue
		}
		d.Then, d.ThenKey = nil, ""
		if partition == carrier && then != nil {
			value, err := g.streams.FanoutLoop.Encode(then.step)
			if err != nil {
				return fmt.Errorf("encode %s: %w", topics.FanoutLoop, err)
			}
			d.Then, d.ThenKey = value, then.owner
		}
		if err := rows.SendTo(tx, g.streams.Deliveries, int32(partition), string(s.Followee), &d); err != nil {
			return err
		}
	}
	return nil
}

// finish ends a walk among the owner's edges. It continues the walk in the shards and starts the next queued walk.
func (g *group) finish(tx *rows.Tx, b *book, s *schemas.FanoutStep) error {
	if !s.All {
		tx.Effect(effectAway, b.away)
	}
	followee, _ := followeeOf(tx.Key())
	if b.spread && !b.shard {
		b.steps++
		on := *s
		on.After, on.Away, on.Turn, on.Number = "", false, false, 0
		for p := range g.partitions {
			if err := g.loop(tx, shardOf(followee, p, g.partitions), &on); err != nil {
				return err
			}
		}
		if s.Back {
			b.back += int(g.partitions) - 1
		}
	}
	if !b.busy {
		return nil // nothing waits
	}
	return g.nextTurn(tx, b)
}
