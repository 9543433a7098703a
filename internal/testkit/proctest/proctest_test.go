package proctest_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// tally counts each user's edges in row "n" and emits an edge weight for each edge.
func tally(s *topics.Streams) rows.Group {
	return rows.Group{
		Name: topics.Pools,
		Inputs: []rows.Input{rows.Keyed(s.Edges, func(tx *rows.Tx, e *schemas.Edge) error {
			value, err := tx.Own().Get([]byte("n"))
			if err != nil {
				return err
			}
			var n uint64
			if value != nil {
				n = binary.BigEndian.Uint64(value)
			}
			tx.Own().Put([]byte("n"), binary.BigEndian.AppendUint64(nil, n+1))
			rows.Send(tx, s.EdgeWeights, tx.Key(), &schemas.EdgeWeight{Followee: schemas.Followee(e.User), User: e.User, Weight: 1})
			return nil
		})},
		Outputs: []string{topics.EdgeWeights},
	}
}

// share returns how many users' partitions a member owns.
func share(m *proctest.Member, users int) int {
	n := 0
	for u := range users {
		if m.Owns(topics.Pools, fmt.Sprintf("user:%d", u)) {
			n++
		}
	}
	return n
}

func TestPause_FencesLateWrites(t *testing.T) {
	w := proctest.New(t)
	a, b := w.Start("a", tally(w.Streams)), w.Start("b", tally(w.Streams))
	const users, rounds = 20, 4
	w.Eventually("both have a share", func() bool { return share(a, users) > 0 && share(b, users) > 0 })
	lost := a.Faults()
	lost.Cut(kmsg.EndTxn, 3)
	lost.Cut(kmsg.Produce, 4)
	for round := range rounds {
		for u := range users {
			user := schemas.UserID(fmt.Sprintf("user:%d", u))
			proctest.Publish(w, w.Streams.Edges, string(user),
				&schemas.Edge{User: user, Other: "user:x", Kind: schemas.FollowEdge, Live: true, Time: schemas.Micros(round)})
		}
		switch round {
		case 1:
			b.Pause()
			w.Eventually("the other member owns all partitions", func() bool { return share(a, users) == users })
		case 2:
			b.Resume()
		}
	}
	w.WaitIdle()
	for u := range users {
		owner := fmt.Sprintf("user:%d", u)
		got := w.Rows(topics.Pools, owner)
		if len(got) != 1 || binary.BigEndian.Uint64(got[0].Value) != rounds {
			t.Errorf("%s: rows %v, want one that counts %d", owner, got, rounds)
		}
	}
	expect.Equal(t, len(proctest.Drain(w, w.Streams.EdgeWeights)), users*rounds, "emitted records")
	expect.AtLeast(t, min(lost.Hits(kmsg.EndTxn), lost.Hits(kmsg.Produce)), 1, "lost responses to EndTxn and to Produce")
}

// newest stores each user's last edge by time in row "e". The row is a register, and therefore converges.
func newest(s *topics.Streams) rows.Group {
	return rows.Group{
		Name: topics.Pools,
		Inputs: []rows.Input{rows.Keyed(s.Edges, func(tx *rows.Tx, e *schemas.Edge) error {
			old, err := tx.Own().Get([]byte("e"))
			if err != nil {
				return err
			}
			if old != nil && int64(binary.BigEndian.Uint64(old)) >= int64(e.Time) {
				return nil
			}
			tx.Own().Put([]byte("e"), binary.BigEndian.AppendUint64(nil, uint64(e.Time)))
			return nil
		})},
	}
}

// converging returns a case for newest. tally fails it, because repeats change its counts.
func converging(group func(*topics.Streams) rows.Group) proctest.Case[schemas.Edge, map[string]uint64] {
	c := proctest.Case[schemas.Edge, map[string]uint64]{
		Start: func(w *proctest.Wire) *proctest.Member { return w.Start("a", group(w.Streams)) },
		Publish: func(w *proctest.Wire, e schemas.Edge) {
			proctest.Publish(w, w.Streams.Edges, string(e.User), &e)
		},
		State: func(w *proctest.Wire) map[string]uint64 {
			got := map[string]uint64{}
			for _, row := range w.Rows(topics.Pools, "") {
				got[row.Owner] = binary.BigEndian.Uint64(row.Value)
			}
			return got
		},
		Want: map[string]uint64{},
	}
	for i := range 40 {
		user := schemas.UserID(fmt.Sprintf("user:%d", i%7))
		c.Events = append(c.Events, schemas.Edge{User: user, Other: "user:x", Kind: schemas.FollowEdge, Time: schemas.Micros(i + 1)})
		c.Want[string(user)] = uint64(i + 1)
	}
	return c
}

func TestConverge_ComparesEveryArrangement(t *testing.T) {
	proctest.Converge(t, 4, converging(newest))
}

func TestArrange_KeepsAndRepeatsEvents(t *testing.T) {
	events := make([]int, 100)
	for i := range events {
		events[i] = i
	}
	cuts, repeats, moved := 0, 0, 0
	for seed := range uint64(20) {
		pieces := proctest.Arrange(rand.New(rand.NewPCG(seed, 0)), events)
		cuts += len(pieces) - 1
		times := make([]int, len(events))
		at := 0
		for _, piece := range pieces {
			expect.AtLeast(t, len(piece), 1, "seed %d: events of a piece", seed)
			for _, e := range piece {
				times[e]++
				if e != at {
					moved++
				}
				at++
			}
		}
		for e, n := range times {
			expect.AtLeast(t, n, 1, "seed %d: occurrences of event %d", seed, e)
			repeats += n - 1
		}
	}
	if cuts == 0 || repeats < 500 || moved < 1500 {
		t.Errorf("%d cuts, %d repeats, %d events moved in 20 arrangements of 100", cuts, repeats, moved)
	}
}
