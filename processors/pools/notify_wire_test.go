package pools_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
)

// notified counts the followees whose last notification about the reader satisfies is.
func (r *rig) notified(is func(m *schemas.EdgeMode) bool) (n int) {
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

// The notifications of all followees of the reader do not fit in one record. A timer continues them. The reader becomes
// inactive and is reactivated by a visit like any other: shown pins are seen, every followee is notified, and until the
// last answer chunks are degraded. A rebuild behaves alike.
func TestNotifyFollowees_ContinuesInNextRecord(t *testing.T) {
	const many = 1100
	r := newRigWith(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100, InactiveAfter: time.Hour}, narrow)
	for n := range many {
		r.edge(reader, schemas.FollowEdge, schemas.ID(fmt.Sprint("user:a-", n)), true)
	}
	r.tick(2*time.Hour, reader)
	isInactive := func(m *schemas.EdgeMode) bool { return m.Inactive }
	if n := r.notified(isInactive); n == 0 || n == many {
		t.Fatalf("the first record notifies %d followees, want some of %d", n, many)
	}
	r.tick(3*time.Hour, reader)
	expect.Equal(t, r.notified(isInactive), many, "followees notified that the reader is inactive")
	r.serve(reader, "back")
	r.WaitIdle()
	expect.Empty(t, r.DeadLetterReasons(), "dead letters")
	expect.Equal(t, r.count(reader, 's'), 1, "seen pins")
	r.backfillAll("reactivation", many)
	proctest.Publish(r.Wire, r.Streams.Rebuilds, string(reader), &schemas.Rebuild{User: reader})
	r.WaitIdle()
	r.backfillAll("rebuild", many)
}

// backfillAll answers the backfill request that many followees receive. Chunks are degraded until the last answer.
func (r *rig) backfillAll(cause string, many int) {
	r.t.Helper()
	modes := r.modes("user:a-0")
	id := modes[len(modes)-1].BackfillID
	for range many * 2 / 3 { // some of the answers arrive before the other followees are notified
		r.backfill(id)
	}
	r.Eventually("every followee receives a backfill request after a "+cause, func() bool {
		return r.notified(func(m *schemas.EdgeMode) bool { return m.BackfillID == id && !m.Inactive }) == many
	})
	for range many - many*2/3 - 1 {
		r.backfill(id)
	}
	r.WaitIdle()
	expect.Equal(r.t, len(r.requestChunk(cause+" but one", true).Degraded), 1, "%s: reasons before the last answer", cause)
	r.backfill(id)
	r.WaitIdle()
	expect.Equal(r.t, len(r.requestChunk(cause+" complete", true).Degraded), 0, "%s: reasons after the last answer", cause)
}

// A rebuild that replaces a notification in progress sends requests to the followees of all sources. Chunks wait if they
// waited before.
func TestRebuild_ReplacesNotificationInProgress(t *testing.T) {
	const many = 1100
	r := newRigWith(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100}, narrow)
	for n := range many {
		r.edge(reader, schemas.FollowEdge, schemas.ID(fmt.Sprint("user:a-", n)), true)
	}
	r.WaitIdle()
	proctest.Publish(r.Wire, r.Streams.Rebuilds, string(reader), // in one batch: no timer fires between the records
		&schemas.Rebuild{User: reader}, &schemas.Rebuild{User: reader, Source: schemas.FromInterest, Keep: true})
	r.WaitIdle()
	r.backfillAll("rebuild", many)
}
