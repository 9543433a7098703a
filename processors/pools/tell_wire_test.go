package pools_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
)

// told counts the followees whose last notification about the reader satisfies is.
func (r *rig) told(is func(m *schemas.EdgeMode) bool) (n int) {
	last := map[string]*schemas.EdgeMode{}
	for _, rec := range proctest.Drain(r.Wire, r.Streams.EdgeModes) {
		last[rec.Key] = rec.Value
	}
	for _, m := range last {
		if is(m) {
			n++
		}
	}
	return n
}

// A user with more followees than a record can notify becomes inactive and is reactivated by a visit like any other: shown
// pins are seen, every followee is notified, and until the last answer chunks know that some are missing. A rebuild behaves
// alike.
func TestWhoeverFollowsMoreThanARecordMayTell(t *testing.T) {
	t.Parallel()
	const many = 1100
	r := newRigWith(t, pools.Config{Cap: 100, Sources: 3, SeenCap: 1000, Frozen: 100, AwayAfter: time.Hour}, narrow)
	for n := range many {
		r.edge(reader, schemas.FollowEdge, schemas.ID(fmt.Sprint("user:a-", n)), true)
	}
	r.tick(2*time.Hour, reader)
	if n := r.told(func(m *schemas.EdgeMode) bool { return m.Inactive }); n != many {
		t.Errorf("%d followees are told that the reader is away, want %d", n, many)
	}
	r.serve(reader, "back")
	r.WaitIdle()
	r.noLetters()
	if n := r.count(reader, 's'); n != 1 {
		t.Errorf("%d pins are seen, want the one that was shown", n)
	}
	for _, made := range []string{"back", "anew"} {
		if made == "anew" {
			proctest.Publish(r.Wire, r.Streams.Rebuilds, string(reader), &schemas.Rebuild{User: reader})
			r.WaitIdle()
		}
		modes := r.modes("user:a-0")
		if len(modes) == 0 {
			t.Fatal("nothing is told")
		}
		asked := modes[len(modes)-1].BackfillID
		if n := r.told(func(m *schemas.EdgeMode) bool { return m.BackfillID == asked && !m.Inactive }); n != many || asked == 0 {
			t.Fatalf("%d followees are asked when the pools are %s, want %d", n, made, many)
		}
		for range many - 1 {
			r.answer(asked)
		}
		r.WaitIdle()
		if c := r.ask(made+" but one", true); len(c.Degraded) != 1 {
			t.Errorf("degraded %v before the last answer to whoever is %s", c.Degraded, made)
		}
		r.answer(asked)
		r.WaitIdle()
		if c := r.ask(made+" at last", true); len(c.Degraded) > 0 {
			t.Errorf("degraded %v after the last answer to whoever is %s", c.Degraded, made)
		}
	}
}
