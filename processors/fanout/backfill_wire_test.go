package fanout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// A follower toggles a hundred times in an interval. The first follow and five more get an immediate backfill. The others
// get one backfill together at the end of the interval. It includes later publications, and survives a crash.
func TestBackfill_BoundedForTogglingFollower(t *testing.T) {
	const author, fan, pins, toggles, immediate = "user:author", "user:fan", 10, 100, 6
	cfg := fanout.Config{
		ScoreHalfLife: halfLife, StepFollowers: 3, MaxRecentPublications: 100, PullThreshold: never, BackfillInterval: time.Hour,
	}
	w, m := start(t, cfg)
	for n := range pins {
		announce(w, author, pinOf(author, n, schemas.Micros(n)))
	}
	w.WaitIdle()
	var events []*schemas.FollowEvent
	for i := range toggles {
		verb := []schemas.Verb{schemas.Follow, schemas.Unfollow}[i%2]
		events = append(events, follow(fmt.Sprint(i), schemas.Micros(i), fan, verb, author))
	}
	proctest.Publish(w, w.Streams.Follows, author, events...)
	w.WaitIdle()
	delivered := func() int { return len(deliveries(t, w, author)) }
	expect.Equal(t, delivered(), immediate*pins, "pins delivered by %d backfills of %d", immediate, pins)
	announce(w, author, pinOf(author, pins, pins)) // the fan does not follow at this time
	w.WaitIdle()
	publish(w, follow("last", toggles, fan, schemas.Follow, author))
	w.WaitIdle()
	expect.NoDiff(t, delivered(), immediate*pins, "pins delivered before the end of the interval")
	expect.NoDiff(t, m.Status(topics.Fanout).Effects["deferred_backfills"], int64(toggles/2-immediate+1), "deferred_backfills")
	m.Kill()
	m.Restart()
	w.Tick(topics.Fanout, author, time.Now().Add(2*time.Hour))
	w.WaitIdle()
	expect.NoDiff(t, delivered(), immediate*pins+pins+1, "pins delivered after the interval")
	w.Tick(topics.Fanout, author, time.Now().Add(4*time.Hour))
	w.WaitIdle()
	expect.NoDiff(t, delivered(), immediate*pins+pins+1, "pins delivered after the second tick")
}

// A deferred backfill is not delivered to a user who no longer follows.
func TestDeferredBackfill_SkipsFormerFollower(t *testing.T) {
	const author, fan = "user:author", "user:fan"
	cfg := fanout.DefaultConfig()
	cfg.BackfillInterval = time.Hour
	w, _ := start(t, cfg)
	announce(w, author, pinOf(author, 1, 1))
	w.WaitIdle()
	for i := range 16 {
		publish(w, follow(fmt.Sprint(i), schemas.Micros(i), fan, []schemas.Verb{schemas.Follow, schemas.Unfollow}[i%2], author))
	}
	w.WaitIdle()
	before := deliveries(t, w, author)
	w.Tick(topics.Fanout, author, time.Now().Add(2*time.Hour))
	w.WaitIdle()
	expect.NoDiff(t, deliveries(t, w, author), before, "deliveries to a user who does not follow")
	expect.NoDiff(t, rowsOf(w, author, 'h'), nil, "budgets that remain")
}

// The pools request a backfill after each follow of a user who was inactive before. These requests count like follows. A
// request that a chunk waits for is answered immediately.
func TestBackfill_BoundedForUnawaitedRequests(t *testing.T) {
	const author, fan = "user:author", "user:fan"
	cfg := fanout.DefaultConfig()
	cfg.BackfillInterval = time.Hour
	w, _ := start(t, cfg)
	announce(w, author, pinOf(author, 1, 1))
	publish(w, follow("1", 1, fan, schemas.Follow, author))
	w.WaitIdle()
	publishRequest := func(request schemas.Micros) {
		proctest.Publish(w, w.Streams.EdgeModes, author, &schemas.EdgeMode{Followee: author, User: fan, BackfillID: request})
	}
	for range 20 {
		publishRequest(schemas.NotAwaited)
	}
	w.WaitIdle()
	expect.Equal(t, len(deliveries(t, w, author)), 1+5, "pins delivered: one by the follow and 5 for the requests")
	publishRequest(base)
	w.WaitIdle()
	expect.Equal(t, len(deliveries(t, w, author)), 1+5+1, "pins delivered with the request that a chunk awaits")
}
