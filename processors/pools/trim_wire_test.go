package pools_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Pools with the same history become due in one delivery, and would drop more rows than a record may write. The delivery
// trims as many as fit in its record, and the next deliveries trim the others.
func TestTrimPools_DueTogether(t *testing.T) {
	const limit, slack, many = 10, 2, 120
	r := newRigWith(t, pools.Config{MaxCandidates: limit, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100}, narrow)
	users := topicstest.KeysIn[schemas.UserID]("user:same-", 0, r.Kafka.Partitions, many) // they follow only the same author
	for _, user := range users {
		r.edge(user, schemas.FollowEdge, "user:a", true)
	}
	r.WaitIdle()
	last := 0
	deliver := func(pins int) {
		for range pins {
			last++
			pins := []schemas.DeliveredPin{pin(last, schemas.Micros(last), "user:a")}
			d := &schemas.Delivery{Source: schemas.Following, Pins: pins, Users: users}
			proctest.PublishTo(r.Wire, r.Streams.Deliveries, 0, "user:a", time.Time{}, d)
		}
		r.WaitIdle()
	}
	deliver(2*limit + slack) // the first turn drops two rows of each pool, the second ten
	expect.Empty(t, r.DeadLetterReasons(), "dead letters")
	postponed := 0
	for _, user := range users {
		if r.count(user, 'c') == 2*limit {
			postponed++
		}
	}
	if postponed == 0 || postponed == many {
		t.Fatalf("%d of %d pools are not trimmed: one record trimmed all or none", postponed, many)
	}
	deliver(2 * limit)
	expect.Empty(t, r.DeadLetterReasons(), "dead letters")
	var want []place
	for n := last; n > last-limit; n-- {
		want = append(want, place{pin(n, 0, "").Pin, schemas.PoolScore(n)})
	}
	for _, user := range users {
		expect.AtMost(t, r.count(user, 'c'), 3*limit, "rows of %s", user)
		expect.NoDiff(t, placesOf(r.pool(user, schemas.Following))[:limit], want, "%s", string(user))
	}
}

// An erasure, a rebuild, and a lowered cap of seen pins delete many rows in steps that fit the smallest bounds of a record.
func TestDeletions_SplitManyRows(t *testing.T) {
	const many = 1500
	r := newRigWith(t, pools.Config{MaxCandidates: 5000, MaxSources: 3, MaxSeenPins: 5000, MaxRecentItems: 100}, narrow)
	for _, user := range []schemas.UserID{"user:erased", "user:rebuilt"} {
		for n := 0; n < many; n += 100 {
			var pins []schemas.DeliveredPin
			for k := range 100 {
				pins = append(pins, pin(n+k, schemas.Micros(n+k), "user:a"))
			}
			r.deliver(schemas.Following, user, 1, pins...)
			r.edge(user, schemas.FollowEdge, schemas.ID(fmt.Sprint("user:a-", n)), true)
		}
	}
	for n := 0; n < many; n += 100 {
		r.showPins("user:seen", n, n+100)
	}
	r.WaitIdle()
	expect.Equal(t, [2]int{r.count("user:erased", 'c'), r.count("user:seen", 's')}, [2]int{many, many}, "candidates and seen pins")
	r.cfg.MaxSeenPins = 1000
	r.member = r.StartWith("a", narrow, pools.Group(r.cfg, r.Streams, deletedUsers()))
	erase := &schemas.Erasure{User: "user:erased", Step: schemas.EraseUser, Time: 5}
	proctest.Publish(r.Wire, r.Streams.Erasures, string(erase.User), erase)
	proctest.Publish(r.Wire, r.Streams.Rebuilds, "user:rebuilt", &schemas.Rebuild{User: "user:rebuilt"})
	for n := range 5 {
		r.showPins("user:seen", many+n, many+n+1)
	}
	r.WaitIdle()
	expect.Empty(t, r.DeadLetterReasons(), "dead letters")
	expect.Empty(t, r.Rows(topics.Pools, "user:erased"), "rows of the erased user")
	expect.Equal(t, r.count("user:rebuilt", 'c'), 0, "candidates of the rebuilt user")
	expect.Equal(t, r.count("user:seen", 's'), 1000, "seen pins")
}
