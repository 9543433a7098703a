package proctest_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/smartfeed/smartfeed/processors/proctest"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// tally counts each user's edges in row "n" and passes them on as weights.
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
			if err := tx.Own().Put([]byte("n"), binary.BigEndian.AppendUint64(nil, n+1)); err != nil {
				return err
			}
			return rows.Send(tx, s.EdgeWeights, tx.Key(), &schemas.EdgeWeight{Followee: schemas.Followee(e.User), User: e.User, Weight: 1})
		})},
		Outputs: []string{topics.EdgeWeights},
	}
}

func TestMembersCountOnceThroughKillsAndMoves(t *testing.T) {
	w := proctest.New(t)
	a := w.Start("a", tally(w.Streams))
	const users, rounds = 20, 6
	for round := range rounds {
		for u := range users {
			user := schemas.UserID(fmt.Sprintf("user:%d", u))
			proctest.Publish(w, w.Streams.Edges, string(user),
				&schemas.Edge{User: user, Other: "user:x", Kind: schemas.FollowEdge, Live: true, Time: schemas.Micros(round)})
		}
		switch round {
		case 1:
			w.Start("b", tally(w.Streams))
		case 2:
			a.Kill()
		case 3:
			a.Restart()
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
	if got := len(proctest.Drain(w, w.Streams.EdgeWeights)); got != users*rounds {
		t.Errorf("%d records emitted, want %d", got, users*rounds)
	}
}
