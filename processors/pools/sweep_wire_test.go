package pools_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// inTwoDays is a time by which every pool has been swept of current deletions.
const inTwoDays = 49 * time.Hour

// candidatesOf counts a user's candidate rows whose name contains name.
func (r *rig) candidatesOf(user schemas.UserID, name string) (n int) {
	r.t.Helper()
	for _, row := range r.Rows(topics.Pools, string(user)) {
		of := row.Name[0] == 'c' || row.Name[0] == 'd'
		if of && (strings.Contains(string(row.Name), name) || strings.Contains(string(row.Value), name)) {
			n++
		}
	}
	return n
}

// Candidates of an erased author are removed from the pools of current and former followers without another delivery to these
// pools. The same holds for candidates that arrive later over other edges.
func TestSweep_RemovesCandidatesOfErasedAuthor(t *testing.T) {
	cfg := pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100}
	r := newRig(t, cfg)
	const former, other schemas.UserID = "user:former", "user:other"
	for _, user := range []schemas.UserID{reader, former} {
		r.edge(user, schemas.FollowEdge, "user:a", true)
		for n := range 20 {
			r.deliver(schemas.Following, user, 1, pin(n, schemas.Micros(n+1), "user:a"))
		}
		r.deliver(schemas.Following, user, 1, pin(20, 21, "user:b"))
	}
	r.edge(former, schemas.FollowEdge, "user:a", false)
	r.WaitIdle()
	r.member = r.Start("a", pools.Group(r.cfg, r.Streams, deletedtest.Of("user:a")))
	for _, user := range []schemas.UserID{reader, former} {
		e := &schemas.Edge{User: user, Other: "user:a", Kind: schemas.FollowEdge, Time: 2, Erased: true}
		proctest.Publish(r.Wire, r.Streams.Edges, string(user), e)
	}
	r.deliver(schemas.FromInterest, other, 1, pin(1, 2, "user:a"), pin(2, 3, "user:b"))
	o := &schemas.Offer{ID: "o", Time: 1, User: "user:offered", Source: "editors", Candidates: []schemas.Candidate{
		{Pin: "pin:1", Facets: schemas.Facets{Author: "user:a"}}, {Pin: "pin:2", Facets: schemas.Facets{Author: "user:b"}},
	}}
	proctest.Publish(r.Wire, r.Streams.Candidates, string(o.User), o)
	users := []schemas.UserID{reader, former, other, o.User}
	r.tick(23*time.Hour, users...)
	expect.Equal(t, r.candidatesOf(reader, "user:a"), 20, "candidates of the erased author within a day")
	r.tick(inTwoDays, users...)
	for _, user := range users {
		expect.Equal(t, r.candidatesOf(user, "user:a"), 0, "candidates of the erased author for %s", user)
		expect.Equal(t, r.candidatesOf(user, "user:b"), 1, "candidates of another author for %s", user)
	}
	expect.Equal(t, r.timersOf("sweep"), 0, "timers")
}

// All versions of a deleted pin are removed after a day, and not before: an earlier version may still arrive over another
// edge. The deletions of a day share a timer.
func TestSweep_RemovesDeletedPins(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100})
	r.edge(reader, schemas.FollowEdge, "user:a", true)
	now := schemas.MicrosOf(time.Now())
	for n := range 6 {
		p := pin(n, now+schemas.Micros(n), "user:a")
		r.deliver(schemas.Following, reader, 1, p)
		if n < 4 {
			p.Version, p.Deleted = p.Version+10, true
			r.deliver(schemas.Following, reader, 1, p)
		}
	}
	r.tick(23*time.Hour, reader)
	expect.Equal(t, [2]int{r.candidatesOf(reader, "user:a"), r.timersOf("sweep")}, [2]int{10, 1}, "rows and timers within a day")
	r.tick(inTwoDays, reader)
	expect.Equal(t, r.candidatesOf(reader, "user:a"), 2, "rows in two days")
	expect.Equal(t, r.pool(reader, schemas.Following).Total, 2, "candidates in two days")
	expect.Equal(t, r.member.Status(topics.Pools).Dropped["deleted"], 8, "rows dropped as deleted")
}

// The timers of an erased user are removed with the rows.
func TestErase_RemovesSweepTimers(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 100, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100})
	p := pin(1, 1, "user:a")
	p.Deleted = true
	r.deliver(schemas.Following, reader, 1, p)
	r.WaitIdle()
	expect.Equal(t, r.timersOf("sweep"), 1, "timers")
	proctest.Publish(r.Wire, r.Streams.Erasures, string(reader), &schemas.Erasure{User: reader, Step: schemas.EraseUser, Time: 5})
	r.WaitIdle()
	expect.Equal(t, [2]int{r.timersOf("sweep"), len(r.Rows(topics.Pools, string(reader)))}, [2]int{}, "timers and rows of an erased user")
}

// A pool with more rows to drop than a record may write is swept in steps.
func TestSweep_SplitsManyRows(t *testing.T) {
	const many = 1500
	r := newRigWith(t, pools.Config{MaxCandidates: 5000, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100}, narrow)
	var pins []schemas.DeliveredPin
	for n := range many {
		p := pin(n, schemas.Micros(n+1), "user:a")
		p.Deleted = true
		pins = append(pins, p)
	}
	for part := range slices.Chunk(pins, 100) {
		r.deliver(schemas.Following, reader, 1, part...)
	}
	r.tick(0, reader)
	expect.Equal(t, r.candidatesOf(reader, "user:a"), many, "rows")
	for n := range 3 {
		r.tick(inTwoDays+time.Duration(n)*time.Second, reader)
	}
	expect.Empty(t, r.DeadLetterReasons(), "dead letters")
	expect.Equal(t, r.candidatesOf(reader, "user:a"), 0, "rows that remain of %d", many)
}
