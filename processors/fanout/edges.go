package fanout

import (
	"strconv"
	"strings"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Shards. A followee with many followers keeps their edges in shards, one per partition. A shard holds the edges of the
// users whose pools are in its partition. A shard is a separate owner. Its name is the followee's name, shardMark, and the
// lowest number that maps the name to the partition. Ids contain no control characters, so no shard's name is a followee's.

const shardMark = "\x01"

// shardOf returns the shard of a followee in a partition.
func shardOf(followee schemas.Followee, partition, partitions int32) string {
	for n := 0; ; n++ {
		if name := string(followee) + shardMark + strconv.Itoa(n); topics.Partition(name, partitions) == partition {
			return name
		}
	}
}

// followeeOf returns the followee of a key of fanout-loop, and reports whether the key is that of a shard.
func followeeOf(key string) (followee schemas.Followee, shard bool) {
	name, _, shard := strings.Cut(key, shardMark)
	return schemas.Followee(name), shard
}

// edge is a follower and the weight of its edge.
type edge struct {
	user   schemas.UserID
	weight float32
}

// changeEdge changes an edge among the owner's rows, in its shard, or in both while edges are moving to the shards.
func (g *group) changeEdge(tx *rows.Tx, b *book, c schemas.EdgeChange, e edge) error {
	if b.spread {
		step := schemas.FanoutStep{Kind: schemas.EdgesStep, Change: c, Users: []schemas.UserID{e.user}, Weights: []float32{e.weight}}
		if err := g.loop(tx, g.shardFor(tx, e.user), &step); err != nil {
			return err
		}
		if !b.moving || c == schemas.EdgeLive {
			return nil
		}
	}
	return b.change(c, e)
}

func (g *group) shardFor(tx *rows.Tx, user schemas.UserID) string {
	return shardOf(schemas.Followee(tx.Key()), g.partition(user), g.partitions)
}

// loop sends a step to an owner of edges.
func (g *group) loop(tx *rows.Tx, owner string, s *schemas.FanoutStep) error {
	s.Followee, _ = followeeOf(owner)
	return rows.Send(tx, g.streams.FanoutLoop, owner, s)
}

// change changes an edge among the owner's rows. A missing edge stays missing, unless the edge becomes live or inactive.
func (b *book) change(c schemas.EdgeChange, e edge) error {
	live, away := rowOf(rowLive, e.user), rowOf(rowAway, e.user)
	switch c {
	case schemas.EdgeLive:
		if err := b.forgetAway(away); err != nil {
			return err
		}
		return b.Put(live, liveValue(e.weight))
	case schemas.EdgeDead:
		if err := b.forgetAway(away); err != nil {
			return err
		}
		return b.Delete(live)
	case schemas.EdgeAway:
		return b.goAway(live, away, e.weight)
	case schemas.EdgeBack:
		return b.comeBack(live, away)
	}
	return b.weigh(e.weight, live, away)
}

// forgetAway deletes a row of rowAway if it exists.
func (b *book) forgetAway(row []byte) error {
	if b.away == 0 {
		return nil
	}
	value, err := b.Get(row)
	if err != nil || value == nil {
		return err
	}
	b.away--
	return b.Delete(row)
}

func (b *book) goAway(live, away []byte, weight float32) error {
	value, err := b.Get(away)
	if err != nil || value != nil {
		return err
	}
	if err := b.Delete(live); err != nil {
		return err
	}
	b.away++
	return b.Put(away, liveValue(weight))
}

func (b *book) comeBack(live, away []byte) error {
	value, err := b.Get(away)
	if err != nil || value == nil {
		return err
	}
	b.away--
	if err := b.Put(live, value); err != nil {
		return err
	}
	return b.Delete(away)
}

// weigh writes the weight into those of the rows that exist.
func (b *book) weigh(weight float32, among ...[]byte) error {
	for _, row := range among {
		value, err := b.Get(row)
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		if err := b.Put(row, liveValue(weight)); err != nil {
			return err
		}
	}
	return nil
}

// changeEdges applies an EdgesStep at a shard.
func (b *book) changeEdges(s *schemas.FanoutStep) error {
	for i, user := range s.Users {
		e := edge{user, 1}
		if len(s.Weights) > 0 {
			e.weight = s.Weights[i]
		}
		if err := b.change(s.Change, e); err != nil {
			return err
		}
	}
	return nil
}

// spreadOut starts to move a followee's edges to its shards. This is permanent.
func (g *group) spreadOut(tx *rows.Tx, b *book) error {
	b.spread, b.moving = true, true
	tx.Effect(effectSpread, 1)
	return g.loop(tx, tx.Key(), &schemas.FanoutStep{Kind: schemas.MoveStep})
}

// move moves the next edges to the shards. A walk takes the followee's own edges first and the edges of the shards after
// them, so a walk in flight finds each edge in one of the two places.
func (g *group) move(tx *rows.Tx, b *book) error {
	for _, from := range []struct {
		kind byte
		to   schemas.EdgeChange
	}{{rowLive, schemas.EdgeLive}, {rowAway, schemas.EdgeAway}} {
		some, err := g.moveSome(tx, b, from.kind, from.to)
		if err != nil {
			return err
		}
		if some {
			return g.loop(tx, tx.Key(), &schemas.FanoutStep{Kind: schemas.MoveStep})
		}
	}
	b.moving = false
	return nil
}

// moveSome moves edges of a kind and reports whether there were any.
func (g *group) moveSome(tx *rows.Tx, b *book, kind byte, to schemas.EdgeChange) (some bool, err error) {
	st := g.steps.Get().(*step)
	defer g.steps.Put(st)
	st.reset(g.cfg.StepEdges)
	if err := b.Scan(walkFrom(kind, ""), func(row, value []byte) bool { return st.add(row[1:], liveWeight(value)) }); err != nil {
		return false, err
	}
	for p := range st.shares {
		s := schemas.FanoutStep{Kind: schemas.EdgesStep, Change: to}
		if s.Users, s.Weights = st.share(p); len(s.Users) == 0 {
			continue
		}
		if err := g.loop(tx, shardOf(schemas.Followee(tx.Key()), int32(p), g.partitions), &s); err != nil {
			return false, err
		}
		for _, user := range s.Users {
			if err := b.Delete(rowOf(kind, user)); err != nil {
				return false, err
			}
		}
	}
	if kind == rowAway {
		b.away -= st.n
	}
	return st.n > 0, nil
}
