package proctest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
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
			rows.AddNumber(tx.Own(), []byte("n"), 1)
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
		must.Equal(t, len(got), 1, "%s: rows", owner)
		expect.Equal(t, must.Get(packed.Decode[rows.Number](got[0].Value))(t), rounds, "%s: count", owner)
	}
	expect.Equal(t, len(proctest.Drain(w, w.Streams.EdgeWeights)), users*rounds, "emitted records")
	expect.AtLeast(t, min(lost.Hits(kmsg.EndTxn), lost.Hits(kmsg.Produce)), 1, "lost responses to EndTxn and to Produce")
}

// newest stores each user's last edge by time in row "e". The row is a register, and therefore converges.
func newest(s *topics.Streams) rows.Group {
	return rows.Group{
		Name: topics.Pools,
		Inputs: []rows.Input{rows.Keyed(s.Edges, func(tx *rows.Tx, e *schemas.Edge) error {
			last, _ := rows.Load[rows.Number](tx.Own(), []byte("e")) // times start at 1
			last = max(last, rows.Number(e.Time))
			rows.PutValue(tx.Own(), []byte("e"), &last)
			return nil
		})},
	}
}

// With tally instead of newest, the test fails, because repeats change its counts.
func TestConverge_ComparesEveryArrangement(t *testing.T) {
	c := proctest.Case[schemas.Edge, map[string]rows.Number]{
		Start: func(w *proctest.Wire) *proctest.Member { return w.Start("a", newest(w.Streams)) },
		Publish: func(w *proctest.Wire, e schemas.Edge) {
			proctest.Publish(w, w.Streams.Edges, string(e.User), &e)
		},
		State: func(w *proctest.Wire) map[string]rows.Number {
			got := map[string]rows.Number{}
			for _, row := range w.Rows(topics.Pools, "") {
				got[row.Owner] = must.Get(packed.Decode[rows.Number](row.Value))(t)
			}
			return got
		},
		Want: map[string]rows.Number{},
	}
	for i := range 40 {
		user := schemas.UserID(fmt.Sprintf("user:%d", i%7))
		c.Events = append(c.Events, schemas.Edge{User: user, Other: "user:x", Kind: schemas.FollowEdge, Time: schemas.Micros(i + 1)})
		c.Want[string(user)] = rows.Number(i + 1)
	}
	proctest.Converge(t, 4, c)
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
