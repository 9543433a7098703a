package pools_test

import (
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// publishEverything publishes a record of every input that makes a row of the user.
func publishEverything(r *rig, user schemas.UserID) {
	r.t.Helper()
	now, key := schemas.MicrosOf(time.Now()), string(user)
	r.edge(user, schemas.FollowEdge, "user:a", true)
	r.edge(user, schemas.BlockEdge, "board:b", true)
	r.edge(user, schemas.BlockedEdge, "user:c", true)
	r.deliver(schemas.Following, user, 1, pin(1, now, "user:a"))
	proctest.Publish(r.Wire, r.Streams.Candidates, key, &schemas.Offer{
		ID: "offer", Time: now, User: user, Source: "editors", Candidates: []schemas.Candidate{{Pin: "pin:2", Created: now}},
	})
	proctest.Publish(r.Wire, r.Streams.Served, key, &schemas.Served{
		ID: "served", User: user, Time: now, Feed: "home", Items: []schemas.ServedItem{{Pin: "pin:3", Source: schemas.Following, Created: now}},
	})
	proctest.Publish(r.Wire, r.Streams.UserActivity, key, &schemas.UserActivity{User: user})
	proctest.Publish(r.Wire, r.Streams.Affinities, key, &schemas.Affinities{User: user})
	r.WaitIdle()
}

// The erasure itself marks the user as deleted, before the topic users-deleted arrives.
func TestErase_LateRecordsOfErasedUserLeaveNoRows(t *testing.T) {
	t.Parallel()
	cfg := pools.DefaultConfig()
	r := &rig{Wire: proctest.New(t), t: t, cfg: cfg}
	r.Start("a", pools.Group(cfg, r.Streams, deletedtest.Of()))
	const user = schemas.UserID("user:deleted")
	publishEverything(r, user)
	if len(r.Rows(topics.Pools, string(user))) == 0 {
		t.Fatal("the user has no rows to erase")
	}
	proctest.Publish(r.Wire, r.Streams.Erasures, string(user), &schemas.Erasure{User: user, Step: schemas.EraseUser, Time: 5})
	r.WaitIdle()
	publishEverything(r, user)
	for _, row := range r.Rows(topics.Pools, string(user)) {
		t.Errorf("row %q remains", row.Name)
	}
}
