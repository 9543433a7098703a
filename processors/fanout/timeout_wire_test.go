package fanout_test

import (
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// The deliveries to one partition are held across a crash. The timeouts continue the walks, and every follower gets each
// version once, even when the held deliveries are applied at the end.
func TestWalk_ContinuesWithoutStalledPartition(t *testing.T) {
	t.Parallel()
	const followers, pins, author = 40, 4, "user:busy"
	w := proctest.New(t)
	held := topics.Partition("user:10", w.Kafka.Partitions)
	w.Start("pools", relayUnless(w, func(tx *rows.Tx, _ *schemas.Delivery) bool { return tx.Partition() == held }))
	m := w.Start("fanout", group(w, fanout.Config{
		ScoreHalfLife: halfLife, StepFollowers: 2, MaxRecentPublications: 100, PullThreshold: never, StepTimeout: time.Hour,
	}))
	followBy(w, followers, author)
	want := announcePins(w, author, pins, followers)
	m.Kill()
	m.Restart()
	arrived := func() int { return len(deliveries(t, w, author)) }
	if arrived() == len(want) {
		t.Fatal("no walk waits for the stalled partition")
	}
	for hour := 2; hour < 2+2*pins*followers && arrived() < len(want); hour += 2 {
		for p := range w.Kafka.Partitions {
			w.Tick(topics.Fanout, topicstest.KeysIn("owner-", p, w.Kafka.Partitions, 1)[0], time.Now().Add(time.Duration(hour)*time.Hour))
		}
		w.WaitIdle()
	}
	expectDeliveries(t, w, author, want)

	for _, r := range proctest.Drain(w, w.Streams.Deliveries) {
		if r.Partition == held && len(r.Value.Continuation) > 0 {
			w.PublishBytes(topics.FanoutLoop, r.Key, r.Value.Continuation)
		}
	}
	w.WaitIdle()
	expectDeliveries(t, w, author, want)
	status := m.Status(topics.Fanout)
	expect.AtLeast(t, min(status.Effects["timed_out_steps"], status.Dropped["old_step"]), 1, "timed out steps, and old steps")
}
