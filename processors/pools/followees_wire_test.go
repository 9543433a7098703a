package pools_test

import (
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// followAt sends the state of a follow of reader.
func (r *rig) followAt(other schemas.ID, at schemas.Micros, live bool) {
	proctest.Publish(r.Wire, r.Streams.Edges, string(reader),
		&schemas.Edge{User: reader, Other: other, Kind: schemas.FollowEdge, Live: live, Time: at})
}

// inactiveOf returns the field Inactive of a followee's notifications about reader, in order.
func (r *rig) inactiveOf(followee string) (list []bool) {
	for _, m := range r.modes(followee) {
		list = append(list, m.Inactive)
	}
	return list
}

func TestMaxFollowees_RefusesLatestFollow(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100, MaxFollowees: 2})
	expectAuthors := func(when string, authors ...schemas.UserID) {
		t.Helper()
		r.WaitIdle()
		var got []schemas.UserID
		for _, item := range r.pool(reader, schemas.Following).Items {
			got = append(got, item.Author)
		}
		slices.Sort(got)
		expect.NoDiff(t, got, authors, "%s: authors in the pool", when)
	}
	for n, author := range []schemas.UserID{"user:a", "user:b", "user:c", "user:d"} {
		r.deliver(schemas.Following, reader, 1, pin(n, schemas.Micros(10+n), author))
		r.followAt(schemas.ID(author), schemas.Micros(4-n), true) // the earliest one arrives last
	}
	expectAuthors("four follows", "user:c", "user:d")
	expect.Equal(t, r.member.Status(topics.Pools).Dropped["followee_cap"], 2, "followee_cap")
	r.crash()
	r.followAt("user:d", 9, false)
	expectAuthors("after an unfollow", "user:b", "user:c")
	r.followAt("user:c", 9, true) // followed again, now the latest
	expectAuthors("after another time of a follow", "user:a", "user:b")
	want := map[string][]bool{"user:a": {true, false}, "user:b": {true, false}, "user:c": {true}, "user:d": nil}
	got := map[string][]bool{}
	for followee := range want {
		got[followee] = r.inactiveOf(followee)
	}
	expect.NoDiff(t, got, want, "notifications that the user is inactive")
}

// The notification that a refused user is inactive may reach the followee after the next follow. Therefore the admission of
// that follow revokes it.
func TestMaxFollowees_AdmissionRevokesEarlierRefusal(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100, MaxFollowees: 1})
	r.followAt("user:a", 1, true)
	r.followAt("user:b", 2, true)
	r.followAt("user:b", 3, false)
	r.edge(reader, schemas.BlockEdge, "user:b", true)
	r.edge(reader, schemas.BlockEdge, "user:b", false)
	r.followAt("user:a", 3, false)
	r.followAt("user:b", 4, true)
	r.WaitIdle()
	expect.NoDiff(t, r.inactiveOf("user:b"), []bool{true, false}, "notifications of user:b")
	expect.Equal(t, len(r.inactiveOf("user:a")), 0, "notifications of user:a")
}

func TestErase_NotifiesFolloweesOfRefusedFollows(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100, MaxFollowees: 1})
	r.followAt("user:a", 1, true)
	r.followAt("user:b", 2, true)
	r.WaitIdle()
	proctest.Publish(r.Wire, r.Streams.Erasures, string(reader), &schemas.Erasure{User: reader, Step: schemas.EraseReader, Time: 5})
	r.WaitIdle()
	var notified []string
	for _, rec := range proctest.Drain(r.Wire, r.Streams.Erasures) {
		if rec.Value.Step == schemas.EraseFollower {
			notified = append(notified, rec.Key)
		}
	}
	slices.Sort(notified)
	expect.NoDiff(t, notified, []string{"user:a", "user:b"}, "followees with an erasure request")
	expect.Empty(t, r.Rows(topics.Pools, string(reader)), "remaining rows")
}
