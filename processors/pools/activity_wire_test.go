package pools_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

const reader schemas.UserID = "user:reader"

// modes returns the notifications of a followee, in order.
func (r *rig) modes(followee string) []schemas.EdgeMode {
	r.t.Helper()
	var list []schemas.EdgeMode
	for _, rec := range proctest.Drain(r.Wire, r.Streams.EdgeModes) {
		if rec.Key == followee {
			list = append(list, *rec.Value)
		}
	}
	return list
}

// requestChunk requests a chunk once this process owns the partition.
func (r *rig) requestChunk(id string, returned bool) *schemas.Chunk {
	r.t.Helper()
	r.Eventually("the partition", func() bool { return r.member.Owns(topics.Pools, string(reader)) })
	ctx, cancel := context.WithTimeout(r.t.Context(), proctest.Patience)
	defer cancel()
	chunk := must.Get(r.generator.Chunk(ctx, schemas.ChunkRequest{
		Served: id, User: reader, Feed: "plain", Limit: 10, Time: schemas.MicrosOf(time.Now()), Announced: returned,
	}))(r.t)
	r.generator.Settle(reader, id, schemas.Failed) // none of it is shown
	return chunk
}

// backfill delivers a backfill for a reactivated user.
func (r *rig) backfill(request schemas.Micros, pins ...schemas.DeliveredPin) {
	d := &schemas.Delivery{Source: schemas.Following, Pins: pins, Users: []schemas.UserID{reader}, BackfillID: request}
	proctest.PublishTo(r.Wire, r.Streams.Deliveries, topics.Partition(string(reader), r.Kafka.Partitions), "user:x", time.Time{}, d)
}

// A reader who does not visit becomes inactive, and the followees are notified. A visit detects that, the reactivation is
// announced, and every followee receives a backfill request. The chunk waits for the last answer, or is degraded.
func TestActivity_InactivityAndReactivation(t *testing.T) {
	const inactiveAfter = 5 * time.Second // time that a busy machine may need for the steps after the reactivation
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100, InactiveAfter: inactiveAfter})
	began := time.Now()
	r.edge(reader, schemas.FollowEdge, "user:a", true)
	r.edge(reader, schemas.FollowEdge, "board:b", true)
	r.edge(reader, schemas.FollowEdge, "user:former", true)
	r.edge(reader, schemas.FollowEdge, "user:former", false)
	r.WaitIdle()
	expect.False(t, r.requestChunk("present", false).Inactive && time.Since(began) < inactiveAfter, "a new user is inactive")
	r.Eventually("both followees are notified", func() bool { return len(r.modes("user:a")) > 0 && len(r.modes("board:b")) > 0 })
	r.edge(reader, schemas.FollowEdge, "user:late", true) // followed while inactive
	r.WaitIdle()
	for _, followee := range []string{"user:a", "board:b", "user:late"} {
		want := []schemas.EdgeMode{{Followee: schemas.Followee(followee), User: reader, Inactive: true}}
		got := r.modes(followee)
		for i := range got {
			got[i].BackfillID = 0
		}
		expect.NoDiff(t, got, want, "notifications of %s", followee)
	}
	expect.Equal(t, len(r.modes("user:former")), 0, "notifications of a former followee")

	r.deliver(schemas.Following, reader, 1, pin(1, 10, "user:a"))
	r.WaitIdle()
	if chunk := r.requestChunk("inactive", false); !chunk.Inactive || len(chunk.Served.Items) > 0 {
		t.Errorf("inactive %v, items %v; want no items before the visit is announced", chunk.Inactive, chunk.Served.Items)
	}
	proctest.Publish(r.Wire, r.Streams.UserActivity, string(reader), &schemas.UserActivity{User: reader, Time: 5})
	r.WaitIdle()
	request := r.modes("user:a")[1].BackfillID
	for _, followee := range []string{"user:a", "board:b", "user:late"} {
		if got := r.modes(followee); len(got) != 2 || got[1].Inactive || got[1].BackfillID != request || request == 0 {
			t.Fatalf("backfill request to %s: %+v", followee, got)
		}
	}
	r.backfill(request-1, pin(2, 20, "user:a")) // to an earlier request
	r.backfill(request, pin(3, 30, "user:a"))
	r.backfill(request)
	r.WaitIdle()
	if chunk := r.requestChunk("early", true); !slices.Equal(chunk.Degraded, []string{"reactivating"}) || len(chunk.Served.Items) != 3 {
		t.Errorf("degraded %v with %d items, want reactivating, 3 items", chunk.Degraded, len(chunk.Served.Items))
	}

	r.patient()
	chunk := make(chan *schemas.Chunk)
	go func() { chunk <- r.requestChunk("patient", true) }()
	p := pin(4, 40, "user:z")
	p.Board = "board:b"
	r.backfill(request, p)
	if c := <-chunk; len(c.Degraded) > 0 || len(c.Served.Items) != 4 {
		t.Errorf("degraded %v with %d items, want 4 items", c.Degraded, len(c.Served.Items))
	}
}

// A live edge that gets another weight, or is followed again, causes no notification, because the answer would be all
// recents of the followee. This holds for an inactive, reactivated or rebuilt user. A new edge causes one notification.
func TestFollow_ChangedEdgeCausesNoNotification(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100, InactiveAfter: time.Hour})
	const rebuilt, returned, inactive schemas.UserID = "user:rebuilt", "user:returned", "user:inactive"
	users := []schemas.UserID{rebuilt, returned, inactive}
	follow := func(u schemas.UserID, at schemas.Micros, weight float32) {
		proctest.Publish(r.Wire, r.Streams.Edges, string(u),
			&schemas.Edge{User: u, Other: "user:a", Kind: schemas.FollowEdge, Live: true, Time: at, Weight: weight})
	}
	follow(returned, 1, 0)
	follow(inactive, 1, 0)
	r.tick(2*time.Hour, returned, inactive)
	follow(rebuilt, 1, 0)
	r.WaitIdle()
	proctest.Publish(r.Wire, r.Streams.Rebuilds, string(rebuilt), &schemas.Rebuild{User: rebuilt})
	proctest.Publish(r.Wire, r.Streams.UserActivity, string(returned), &schemas.UserActivity{User: returned})
	r.WaitIdle()
	notified := map[schemas.UserID]int{}
	for _, u := range users {
		notified[u] = len(r.modesOf("user:a", u))
		must.AtLeast(t, notified[u], 1, "notifications about %s", u)
	}
	expect := func(when string, more int) {
		t.Helper()
		r.WaitIdle()
		for _, u := range users {
			expect.Equal(t, len(r.modesOf("user:a", u)), notified[u]+more, "%s: %s: notifications", when, u)
		}
	}
	for _, u := range users {
		follow(u, 1, 2)
		follow(u, 5, 2)
	}
	expect("another weight, another time", 0)
	for _, u := range users {
		r.edge(u, schemas.FollowEdge, "user:a", false)
		follow(u, 9, 2)
	}
	expect("unfollowed and followed", 1)
}

// patient makes a generator that waits for backfills without a practical limit.
func (r *rig) patient() {
	cfg := generator.DefaultConfig()
	cfg.ReactivationTimeout = time.Minute
	r.attachWith(cfg)
}

// keepVisiting reports visits, alternately by a Served and by a UserActivity, for longer than InactiveAfter.
func (r *rig) keepVisiting(user schemas.UserID, lasting time.Duration) {
	r.t.Helper()
	start := time.Now()
	for n := 0; time.Since(start) < lasting; n++ {
		if n%2 == 0 {
			r.serve(user, fmt.Sprint("s", n))
		} else {
			proctest.Publish(r.Wire, r.Streams.UserActivity, string(user), &schemas.UserActivity{User: user})
		}
		next := start.Add(time.Duration(n+1) * 300 * time.Millisecond)
		r.Eventually("the next visit", func() bool { return time.Now().After(next) })
	}
	r.WaitIdle()
}

func (r *rig) serve(user schemas.UserID, id string) {
	r.t.Helper()
	proctest.Publish(r.Wire, r.Streams.Served, string(user), &schemas.Served{
		ID: id, User: user, Items: []schemas.ServedItem{{Pin: schemas.PinID("pin:" + id), Source: schemas.Following}},
	})
}

// A Served or a UserActivity keeps a user active. A Served of an inactive user reactivates the user.
func TestActivity_VisitsKeepUserActive(t *testing.T) {
	const inactiveAfter = 2 * time.Second
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100, InactiveAfter: inactiveAfter})
	var user schemas.UserID
	var followee string
	for attempt := range 6 { // on a very busy machine a visit takes two seconds to arrive, and users become inactive
		if attempt == 5 {
			t.Fatalf("notifications about an active user in five attempts: %v", r.modes(followee))
		}
		user, followee = schemas.UserID(fmt.Sprint("user:reader-", attempt)), fmt.Sprint("user:a-", attempt)
		r.edge(user, schemas.FollowEdge, schemas.ID(followee), true)
		r.keepVisiting(user, inactiveAfter*3/2)
		if len(r.modes(followee)) == 0 {
			break
		}
	}
	r.Eventually("the reader is inactive", func() bool { return len(r.modes(followee)) == 1 })
	r.serve(user, "back")
	r.WaitIdle()
	if got := r.modes(followee); len(got) < 2 || got[1].Inactive || got[1].BackfillID == 0 {
		t.Errorf("notifications after a Served: %+v", got)
	}
}

// startWith restarts the process with another InactiveAfter.
func (r *rig) startWith(inactiveAfter time.Duration) {
	r.t.Helper()
	r.WaitIdle()
	r.cfg.InactiveAfter = inactiveAfter
	r.member = r.Start("a", pools.Group(r.cfg, r.Streams, deletedUsers()))
	r.attach()
}

// tick fires the timers of users that are due until after from now.
func (r *rig) tick(after time.Duration, users ...schemas.UserID) {
	r.t.Helper()
	r.WaitIdle() // the records that set the timers come first
	for _, user := range users {
		r.Tick(topics.Pools, string(user), time.Now().Add(after))
	}
	r.WaitIdle()
}

func inHours(n int) time.Time { return time.Now().Add(time.Duration(n) * time.Hour) }

// With InactiveAfter 0, any sign of activity and any rebuild reactivates a user who became inactive before. Until then the
// followees deliver nothing. The generator requests the announcement of the visit.
func TestInactiveAfterZero_ReactivatesInactiveUsers(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100, InactiveAfter: time.Hour})
	rebuild := func(u schemas.UserID, keep bool) {
		proctest.Publish(r.Wire, r.Streams.Rebuilds, string(u), &schemas.Rebuild{User: u, Source: schemas.FromInterest, Keep: keep})
	}
	tests := map[schemas.UserID]func(schemas.UserID){
		reader: func(u schemas.UserID) {
			proctest.Publish(r.Wire, r.Streams.UserActivity, string(u), &schemas.UserActivity{User: u})
		},
		"user:served":  func(u schemas.UserID) { r.serve(u, "s") },
		"user:rebuilt": func(u schemas.UserID) { rebuild(u, false) },
		"user:kept":    func(u schemas.UserID) { rebuild(u, true) },
	}
	users := slices.Collect(maps.Keys(tests))
	for _, user := range users {
		r.edge(user, schemas.FollowEdge, "user:a", true)
		r.edge(user, schemas.FollowEdge, "board:b", true)
	}
	r.tick(2*time.Hour, users...)
	r.startWith(0)
	for _, user := range users {
		if notified := r.modesOf("user:a", user); len(notified) != 1 || !notified[0].Inactive {
			t.Fatalf("notifications about %s: %+v, want one, inactive", user, notified)
		}
	}
	expect.True(t, r.requestChunk("inactive", false).Inactive, "chunk of an inactive user, whose visit is announced")
	for user, comeBack := range tests {
		comeBack(user)
	}
	r.WaitIdle()
	for _, user := range users {
		for _, followee := range []string{"user:a", "board:b"} {
			if notified := r.modesOf(followee, user); len(notified) != 2 || notified[1].Inactive || notified[1].BackfillID == 0 {
				t.Errorf("notifications of %s about %s: %+v, want active after inactive", followee, user, notified)
			}
		}
	}
	if t.Failed() {
		return // no followee received a request
	}
	request := r.modesOf("user:a", reader)[1].BackfillID
	r.backfill(request, pin(1, 10, "user:a"))
	r.backfill(request)
	r.WaitIdle()
	chunk := r.requestChunk("back", true)
	if chunk.Inactive || chunk.Announce || len(chunk.Degraded) > 0 || len(chunk.Served.Items) != 1 {
		t.Errorf("%+v, want the backfilled pins of an active user", chunk)
	}
}

// modesOf returns the notifications of a followee about a user, in order.
func (r *rig) modesOf(followee string, user schemas.UserID) []schemas.EdgeMode {
	r.t.Helper()
	return slices.DeleteFunc(r.modes(followee), func(m schemas.EdgeMode) bool { return m.User != user })
}

// trackedUser is a user with the records published before, while and after InactiveAfter is 0; nil: none.
type trackedUser struct{ before, meanwhile, after func(schemas.UserID) }

// trackedUsers returns users without an inactivity timer at the time when InactiveAfter is no longer 0.
func (r *rig) trackedUsers() map[schemas.UserID]trackedUser {
	rebuild := func(keep bool) func(schemas.UserID) {
		return func(u schemas.UserID) {
			proctest.PublishAt(r.Wire, r.Streams.Rebuilds, inHours(10), string(u), &schemas.Rebuild{User: u, Keep: keep})
		}
	}
	follow := func(hours int) func(schemas.UserID) {
		return func(u schemas.UserID) {
			e := &schemas.Edge{User: u, Other: "user:a", Kind: schemas.FollowEdge, Live: true, Time: 1}
			proctest.PublishAt(r.Wire, r.Streams.Edges, inHours(hours), string(u), e)
		}
	}
	visit := func(u schemas.UserID) {
		proctest.PublishAt(r.Wire, r.Streams.UserActivity, inHours(10), string(u), &schemas.UserActivity{User: u})
	}
	return map[schemas.UserID]trackedUser{
		"user:visits":        {before: follow(0), after: visit},
		"user:follows":       {before: follow(0), after: follow(10)},
		"user:rebuilt":       {before: follow(0), after: rebuild(false)},
		"user:kept":          {before: follow(0), after: rebuild(true)},
		"user:rebuilt-first": {after: func(u schemas.UserID) { rebuild(false)(u); r.WaitIdle(); follow(10)(u) }},
		"user:rebuilt-then":  {meanwhile: rebuild(false), after: follow(10)},
		"user:followed-then": {meanwhile: follow(0), after: visit},
	}
}

// timers counts the inactivity timers.
func (r *rig) timers() int { return r.timersOf("inactive") }

// timersOf counts the timers of a name in the changelog.
func (r *rig) timersOf(name string) int {
	r.t.Helper()
	set := map[string]bool{}
	for _, rec := range r.Records(topics.TableOf(topics.Pools)) {
		if key := string(rec.Key); strings.HasPrefix(key, "\x00") && strings.HasSuffix(key, name) {
			set[key] = true
			if rec.Value == nil {
				delete(set, key)
			}
		}
	}
	return len(set)
}

// A timer that fires while InactiveAfter is 0 sets no other. A user who visits, follows or is rebuilt afterwards gets a
// timer with the full InactiveAfter, because visits were not recorded. This includes users whom a rebuild created.
func TestInactiveAfter_ChangedFromZeroStartsTimers(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100, InactiveAfter: time.Hour})
	all := r.trackedUsers()
	users := slices.Collect(maps.Keys(all))
	publish := func(of func(trackedUser) func(schemas.UserID)) {
		for user, w := range all {
			if f := of(w); f != nil {
				f(user)
			}
		}
		r.WaitIdle()
	}
	publish(func(w trackedUser) func(schemas.UserID) { return w.before })
	expect.Equal(t, r.timers(), 4, "timers, one per follower")
	r.startWith(0)
	r.tick(2*time.Hour, users...)
	publish(func(w trackedUser) func(schemas.UserID) { return w.meanwhile })
	expect.Equal(t, r.timers(), 0, "timers with InactiveAfter 0")
	r.startWith(time.Hour)
	publish(func(w trackedUser) func(schemas.UserID) { return w.after })
	r.tick(10*time.Hour+30*time.Minute, users...)
	r.expectInactive("half an hour later", 0, users)
	r.tick(12*time.Hour, users...)
	r.expectInactive("two hours later", 1, users)
}

// expectInactive checks how often user:a was notified that each user is inactive.
func (r *rig) expectInactive(when string, want int, users []schemas.UserID) {
	r.t.Helper()
	for _, user := range users {
		isActive := func(m schemas.EdgeMode) bool { return !m.Inactive }
		notified := slices.DeleteFunc(r.modesOf("user:a", user), isActive)
		expect.Equal(r.t, len(notified), want, "%s: notifications that %s is inactive", when, user)
	}
}

// A timer that fires late, after a visit has set another, has no effect.
func TestActivity_LateTimerHasNoEffect(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100, InactiveAfter: time.Hour})
	r.edge(reader, schemas.FollowEdge, "user:a", true)
	r.WaitIdle()                                                                  // one after the other
	for _, after := range []time.Duration{120 * time.Minute, 140 * time.Minute} { // the timer is due after 60 minutes
		proctest.PublishAt(r.Wire, r.Streams.UserActivity, time.Now().Add(after), string(reader), &schemas.UserActivity{User: reader})
		r.WaitIdle()
	}
	expect.Equal(t, r.timers(), 2, "timers of the follow and of a visit")
	r.tick(150*time.Minute, reader)
	expect.Equal(t, r.timers(), 1, "timers")
	r.tick(190*time.Minute, reader)
	r.expectInactive("50 minutes after a visit", 0, []schemas.UserID{reader})
	r.tick(210*time.Minute, reader)
	r.expectInactive("70 minutes after a visit", 1, []schemas.UserID{reader})
}
