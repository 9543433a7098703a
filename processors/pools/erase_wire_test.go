package pools_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

const (
	follows = 2500 // more than a step notifies
	offered = 3000 // more than a step deletes, if they are within the cap
)

// building is the second generation at its cut-over.
func building() generation.Record {
	return generation.Record{Group: topics.Pools, Active: 1, Building: 2, CuttingOver: true}
}

// twoGenerations returns two stopped generations of pools. They hold different numbers of candidates of a user who follows
// many. The second one is being built.
func twoGenerations(t *testing.T, firstCap, secondCap int) (w *proctest.Wire, members [2]*proctest.Member) {
	t.Helper()
	w = proctest.New(t)
	w.CreateTopics(topics.TableOf("pools.2"), topics.TicksOf("pools.2"))
	client := must.Get(w.Kafka.Client())(t)
	defer client.Close()
	must.OK(t, topics.SetGeneration(t.Context(), client, building()))
	for i, limit := range []int{firstCap, secondCap} {
		cfg := pools.DefaultConfig()
		cfg.MaxCandidates = limit
		group := pools.Group(cfg, w.Streams, deletedtest.Of())
		group.Generation = i + 1
		members[i] = w.Start(fmt.Sprint("member-", i), group)
	}
	r := &rig{Wire: w, t: t}
	for n := range follows {
		r.edge("user:1", schemas.FollowEdge, followee(n), true)
	}
	for n := 0; n < offered; n += 100 {
		var pins []schemas.DeliveredPin
		for k := range 100 {
			pins = append(pins, schemas.DeliveredPin{
				Pin: schemas.PinID(fmt.Sprint("pin:", n+k)), Version: 1, PinContent: schemas.PinContent{Created: 1, Facets: schemas.Facets{Author: schemas.UserID(followee(0))}}, BaseScore: schemas.BaseScore(n + k),
			})
		}
		r.deliver(schemas.Following, "user:1", 1, pins...)
	}
	w.WaitIdle()
	for i, name := range []string{"pools", "pools.2"} {
		t.Logf("%s has %d rows", name, len(w.Rows(name, "user:1")))
		members[i].Stop()
	}
	return w, members
}

func followee(n int) schemas.ID { return schemas.ID(fmt.Sprint("user:author-", n)) }

// A generation that is being built keeps no rows of a deleted user, even if it had more than the active one. Every followee
// is notified, even if the second generation becomes active after the first step.
func TestErase_InGenerationBeingBuilt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, second int
		cutOver       bool
	}{
		"more rows":                               {10, 5000, false},
		"more rows, active from the second step":  {10, 5000, true},
		"fewer rows, active from the second step": {5000, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, members := twoGenerations(t, c.first, c.second)
			begin := &schemas.Erasure{User: "user:1", Step: schemas.EraseUser, Time: 5}
			proctest.Publish(w, w.Streams.Erasures, "user:1", begin)
			if c.cutOver {
				must.OK(t, topics.WriteMarks(t.Context(), w.Kafka, []string{topics.Erasures}, building()))
			}
			for _, m := range members {
				m.Restart()
			}
			for _, name := range []string{"pools", "pools.2"} {
				w.Eventually("no row remains in "+name, func() bool { return len(w.Rows(name, "user:1")) == 0 })
			}
			w.Eventually("every followee is notified", func() bool {
				notified := map[string]bool{}
				for _, r := range proctest.Drain(w, w.Streams.Erasures) {
					if r.Value != nil && r.Value.Step == schemas.EraseFollower && r.Value.User == "user:1" {
						notified[r.Key] = true
					}
				}
				return len(notified) == follows
			})
		})
	}
}

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
	must.AtLeast(t, len(r.Rows(topics.Pools, string(user))), 1, "rows to erase")
	proctest.Publish(r.Wire, r.Streams.Erasures, string(user), &schemas.Erasure{User: user, Step: schemas.EraseUser, Time: 5})
	r.WaitIdle()
	publishEverything(r, user)
	for _, row := range r.Rows(topics.Pools, string(user)) {
		t.Errorf("row %q remains", row.Name)
	}
}
