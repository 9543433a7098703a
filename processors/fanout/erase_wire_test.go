package fanout_test

import (
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// newErasing starts the group with a delayed global table, for a parallel test.
func newErasing(t *testing.T) *proctest.Wire {
	t.Helper()
	t.Parallel()
	w := proctest.New(t)
	cfg := fanout.DefaultConfig()
	w.Start("a", relay(w), fanout.Group(cfg, w.Kafka.Partitions, w.Streams, deletedtest.Of()))
	return w
}

func erase(w *proctest.Wire, owner string, step schemas.ErasureStep, user schemas.UserID) {
	proctest.Publish(w, w.Streams.Erasures, owner, &schemas.Erasure{User: user, Step: step, Time: base})
	w.WaitIdle()
}

// The erasure marks the user as deleted before the record of the topic users-deleted arrives.
func TestErase_LateEdgesOfErasedFollowerLeaveNoRows(t *testing.T) {
	w := newErasing(t)
	const user, followee = schemas.UserID("user:deleted"), "board:b"
	publish(w, follow("follow", 1, user, schemas.Follow, followee))
	w.WaitIdle()
	must.AtLeast(t, len(w.Rows(topics.Fanout, followee)), 1, "rows to erase")
	erase(w, followee, schemas.EraseFollower, user)
	publish(w,
		follow("late-follow", 2, user, schemas.Follow, followee),
		follow("late-block", 3, user, schemas.Block, followee))
	proctest.Publish(w, w.Streams.EdgeWeights, followee, &schemas.EdgeWeight{Followee: followee, User: user, Weight: 4, Time: base})
	w.WaitIdle()
	expect.Empty(t, w.Rows(topics.Fanout, followee), "rows that remain")
}

func TestErase_LateEventsOfErasedFolloweeLeaveNoRows(t *testing.T) {
	w := newErasing(t)
	const user = schemas.UserID("user:deleted")
	announce(w, schemas.Followee(user), pinOf(user, 1, 1))
	w.WaitIdle()
	erase(w, string(user), schemas.EraseUser, user)
	publish(w, follow("late-follow", 2, "user:fan", schemas.Follow, schemas.ID(user)))
	announce(w, schemas.Followee(user), pinOf(user, 2, 2))
	proctest.Publish(w, w.Streams.EdgeWeights, string(user), &schemas.EdgeWeight{
		Followee: schemas.Followee(user), User: "user:fan", Weight: 4, Time: base,
	})
	w.WaitIdle()
	expect.Empty(t, w.Rows(topics.Fanout, string(user)), "rows that remain")
	deleted := map[schemas.ID]bool{}
	for _, r := range proctest.Drain(w, w.Streams.Pins) {
		deleted[r.Value.Object] = r.Value.Verb == schemas.Delete
	}
	expect.NoDiff(t, deleted, map[schemas.ID]bool{"pin:1": true, "pin:2": true}, "deleted pins: the late one, too")
}

// A store that orders writes by event time would keep an edge that is later than its erasure.
func TestErase_ErasedEdgeIsNotEarlierThanFutureEdge(t *testing.T) {
	w := newErasing(t)
	ahead := schemas.MicrosOf(time.Now().Add(4 * time.Minute))
	publish(w,
		follow("follow", ahead-base, "user:fan", schemas.Follow, "user:deleted"),
		follow("block", ahead-base, "user:fan", schemas.Block, "user:deleted"),
		follow("blocked", ahead-base, "user:deleted", schemas.Block, "user:fan"))
	w.WaitIdle()
	erase(w, "user:deleted", schemas.EraseUser, "user:deleted")
	erase(w, "user:fan", schemas.EraseFollower, "user:deleted")
	erased := map[schemas.EdgeKind]schemas.Micros{}
	for _, r := range proctest.Drain(w, w.Streams.Edges) {
		if r.Value.Erased && r.Value.User == "user:fan" && r.Value.Other == "user:deleted" {
			erased[r.Value.Kind] = r.Value.Time
		}
	}
	for _, kind := range []schemas.EdgeKind{schemas.FollowEdge, schemas.BlockEdge, schemas.BlockedEdge} {
		expect.AtLeast(t, erased[kind], ahead, "%s: erased at", kind)
	}
}
