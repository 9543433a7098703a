package fanout_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/processors/proctest"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

type deleted map[schemas.UserID]bool

func (d deleted) Has(user schemas.UserID) bool { return d[user] }

const (
	base     = schemas.Micros(1_700_000_000_000_000)
	halfLife = time.Hour
)

const never = 1_000_000_000 // a threshold that nobody passes

// relay stands for the pools: it applies deliveries, and sends on what is to be done then.
func relay(w *proctest.Wire) rows.Group {
	return rows.Group{
		Name: topics.Pools,
		Inputs: []rows.Input{rows.Batched(w.Streams.Deliveries, func(tx *rows.Tx, d *schemas.Delivery) error {
			if len(d.Then) == 0 {
				return nil
			}
			return tx.Emit(topics.FanoutLoop, d.ThenKey, d.Then)
		})},
		Outputs: []string{topics.FanoutLoop},
	}
}

func group(w *proctest.Wire, cfg fanout.Config) rows.Group {
	return fanout.Group(cfg, w.Kafka.Partitions, w.Streams, deleted{"user:gone": true})
}

func follow(id string, at schemas.Micros, actor schemas.UserID, verb schemas.Verb, object schemas.ID) *schemas.FollowEvent {
	return &schemas.FollowEvent{Event: schemas.Event{ID: id, Time: base + at, Actor: actor, Verb: verb, Object: object}}
}

func publish(w *proctest.Wire, events ...*schemas.FollowEvent) {
	for _, e := range events {
		proctest.Publish(w, w.Streams.Follows, string(e.Object), e)
	}
}

// pinOf is the first version of a pin of an author, made at a time.
func pinOf(author schemas.UserID, n int, at schemas.Micros) schemas.PinVersion {
	return schemas.PinVersion{
		Pin: schemas.PinID(fmt.Sprintf("pin:%d", n)), Version: schemas.Version(base + at), Created: base + at, Quality: 1,
		Facets: schemas.Facets{Author: author, Interests: []schemas.InterestID{"interest:x"}},
	}
}

func announce(w *proctest.Wire, followee schemas.Followee, versions ...schemas.PinVersion) {
	for _, v := range versions {
		proctest.Publish(w, w.Streams.Publications, string(followee), &schemas.Publication{Followee: followee, PinVersion: v})
	}
}

// brought is one version of a pin that reached a user.
type brought struct {
	User    schemas.UserID
	Pin     schemas.PinID
	Version schemas.Version
	Weight  float32
}

// deliveries returns what reached users from a followee, each record in the partition of its users.
func deliveries(t *testing.T, w *proctest.Wire, followee string) (list []brought, records int) {
	t.Helper()
	for _, r := range proctest.Drain(w, w.Streams.Deliveries) {
		if r.Key != followee {
			continue
		}
		records++
		for i, user := range r.Value.Users {
			if p := topics.Partition(string(user), w.Kafka.Partitions); p != r.Partition {
				t.Errorf("%s is delivered to in partition %d, not %d", user, r.Partition, p)
			}
			weight := float32(1)
			if len(r.Value.Weights) > 0 {
				weight = r.Value.Weights[i]
			}
			for _, p := range r.Value.Pins {
				list = append(list, brought{user, p.Pin, p.Version, weight})
			}
		}
	}
	slices.SortFunc(list, func(a, b brought) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Pin, b.Pin), cmp.Compare(a.Version, b.Version))
	})
	return list, records
}

func expect(t *testing.T, w *proctest.Wire, followee string, want []brought) {
	t.Helper()
	got, _ := deliveries(t, w, followee)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("deliveries of %s (-want +got):\n%s", followee, diff)
	}
}

// edgesOf returns the newest edge of each register, as a reader of the topic ends up with them.
func edgesOf(w *proctest.Wire, other schemas.ID) map[string]schemas.Edge {
	last := map[string]schemas.Edge{}
	for _, r := range proctest.Drain(w, w.Streams.Edges) {
		if e := r.Value; e.Other == other || e.User == schemas.UserID(other) {
			last[fmt.Sprintf("%s %s %s", e.User, e.Kind, e.Other)] = *e
		}
	}
	return last
}

// Followers come and go in any order, again and again; then pins are published to those who stayed; the process is
// killed in between. Every follower gets every version exactly once, in steps of three.
func TestEveryFollowerGetsEveryVersionOnceThroughKills(t *testing.T) {
	w := proctest.New(t)
	m := w.Start("a", relay(w), group(w, fanout.Config{HalfLife: halfLife, StepEdges: 3, Recents: 1000, PullAbove: never, SpreadAbove: never}))
	rng := rand.New(rand.NewPCG(1, 2))
	const author = "user:author"

	var events []*schemas.FollowEvent
	live := map[schemas.UserID]bool{}
	for u := range 20 {
		user := schemas.UserID(fmt.Sprintf("user:%d", u))
		for i := range 4 { // ends with a follow by the odd
			verb := []schemas.Verb{schemas.Follow, schemas.Unfollow}[(u+i)%2]
			live[user] = verb == schemas.Follow
			events = append(events, follow(fmt.Sprintf("f%d-%d", u, i), schemas.Micros(i), user, verb, author))
		}
	}
	events = append(events, events...)
	rng.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for i, e := range events {
		publish(w, e)
		if i == len(events)/2 {
			m.Kill()
			m.Restart()
		}
	}
	w.WaitIdle()
	for name, e := range edgesOf(w, author) {
		if e.Live != live[e.User] || e.Time != base+3 {
			t.Errorf("%s: live %v at %d, want %v at %d", name, e.Live, e.Time, live[e.User], base+3)
		}
	}

	var want []brought
	const pins = 30
	for n := range pins {
		pin := pinOf(author, n, schemas.Micros(n))
		announce(w, author, pin)
		for user, is := range live {
			if is {
				want = append(want, brought{user, pin.Pin, pin.Version, 1})
			}
		}
		if n%10 == 5 {
			m.Kill()
			m.Restart()
		}
	}
	w.WaitIdle()
	slices.SortFunc(want, func(a, b brought) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Pin, b.Pin), cmp.Compare(a.Version, b.Version))
	})
	expect(t, w, author, want)
	steps := proctest.Drain(w, w.Streams.FanoutLoop)
	// Ten followers: 3, 3, 3, 1; and one more for a walk that had to wait for its turn.
	if got, least := len(steps), pins*3; got < least || got > least+pins {
		t.Errorf("%d loop records, want %d, and at most one more a pin", got, least)
	}
}

func TestFanout(t *testing.T) {
	w := proctest.New(t)
	w.Start("a", relay(w), group(w, fanout.Config{HalfLife: halfLife, StepEdges: 100, Recents: 5, PullAbove: never, SpreadAbove: never}))
	for name, run := range map[string]func(*testing.T, *proctest.Wire){
		"a new follower gets the best":           testBackfill,
		"recents are trimmed":                    testTrim,
		"a step sends one record a partition":    testRecords,
		"versions travel, older ones do not":     testVersions,
		"weights travel with the edge":           testWeights,
		"a block is told to both":                testBlocks,
		"bad records go to the dead letters":     testDeadLetters,
		"deleted users' follows are dropped":     testDeletedUsers,
		"an interest is a source of its own":     testSource,
		"an unfollowed one gets nothing further": testUnfollow,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has followees of its own, and mostly waits
			run(t, w)
		})
	}
}

func testBackfill(t *testing.T, w *proctest.Wire) {
	var want []brought
	for _, n := range rand.New(rand.NewPCG(3, 4)).Perm(20) {
		p := pinOf("user:back", 100+n, schemas.Micros(n)*1e6)
		if n == 0 {
			p.Quality = 1e6 // as good as 14 half-lives
		}
		if n != 19 { // the newest is not the board's any more, which a new follower has to learn
			p.Board = "board:back"
		}
		announce(w, "board:back", p)
		if n == 0 || n > 14 {
			want = append(want, brought{"user:fan", p.Pin, p.Version, 1})
		}
	}
	slices.SortFunc(want, func(a, b brought) int { return cmp.Compare(a.Pin, b.Pin) })
	w.WaitIdle()
	publish(w, follow("back", 0, "user:fan", schemas.Follow, "board:back"),
		follow("again", 1, "user:fan", schemas.Follow, "board:back")) // brings nothing more
	w.WaitIdle()
	expect(t, w, "board:back", want)
	for _, r := range proctest.Drain(w, w.Streams.Deliveries) {
		for _, p := range r.Value.Pins {
			if p.Pin == "pin:100" && p.Score != score.Base(1e6, base, halfLife) {
				t.Errorf("%s: score %v", p.Pin, p.Score)
			}
		}
	}
}

func testTrim(t *testing.T, w *proctest.Wire) {
	const pins, recents = 400, 5
	for n := range pins {
		p := pinOf("user:trim", 200+n, schemas.Micros(n))
		p.Deleted = n%2 == 0
		announce(w, "user:trim", p)
	}
	w.WaitIdle()
	if got := len(w.Rows(topics.Fanout, "user:trim")); got < 2*recents || got > 30*recents {
		t.Errorf("%d rows of %d publications, want a few times %d", got, pins, recents)
	}
	publish(w, follow("trim", 0, "user:fan", schemas.Follow, "user:trim"))
	w.WaitIdle()
	got, _ := deliveries(t, w, "user:trim")
	var names []schemas.PinID
	for _, b := range got {
		names = append(names, b.Pin)
	}
	if diff := gocmp.Diff([]schemas.PinID{
		"pin:590", "pin:591", "pin:592", "pin:593", "pin:594", "pin:595", "pin:596", "pin:597", "pin:598", "pin:599",
	}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func testRecords(t *testing.T, w *proctest.Wire) {
	for u := range 100 {
		publish(w, follow(fmt.Sprintf("rec-%d", u), 0, schemas.UserID(fmt.Sprintf("user:rec-%d", u)), schemas.Follow, "user:rec"))
	}
	w.WaitIdle()
	announce(w, "user:rec", pinOf("user:rec", 700, 0))
	w.WaitIdle()
	got, records := deliveries(t, w, "user:rec")
	if len(got) != 100 || records != int(w.Kafka.Partitions) {
		t.Errorf("%d deliveries in %d records, want 100 in %d", len(got), records, w.Kafka.Partitions)
	}
	for _, r := range proctest.Drain(w, w.Streams.FanoutLoop) {
		t.Errorf("loop record of %s", r.Key)
	}
}

func testVersions(t *testing.T, w *proctest.Wire) {
	publish(w, follow("ver", 0, "user:fan", schemas.Follow, "user:ver"))
	w.WaitIdle()
	first := pinOf("user:ver", 800, 0)
	second, third := first, first
	second.Version, second.Author = first.Version+1, "user:other"
	third.Version, third.Deleted = first.Version+2, true
	announce(w, "user:ver", first, first, second, first, third, second, first)
	w.WaitIdle()
	expect(t, w, "user:ver", []brought{
		{"user:fan", first.Pin, first.Version, 1}, {"user:fan", first.Pin, second.Version, 1}, {"user:fan", first.Pin, third.Version, 1},
	})
	publish(w, follow("ver2", 0, "user:late", schemas.Follow, "user:ver"))
	w.WaitIdle()
	expect(t, w, "user:ver", []brought{
		{"user:fan", first.Pin, first.Version, 1}, {"user:fan", first.Pin, second.Version, 1}, {"user:fan", first.Pin, third.Version, 1},
		{"user:late", first.Pin, third.Version, 1}, // that it is deleted
	})
}

func testWeights(t *testing.T, w *proctest.Wire) {
	weigh := func(user schemas.UserID, weight float32, at schemas.Micros) {
		proctest.Publish(w, w.Streams.EdgeWeights, "user:wei",
			&schemas.EdgeWeight{Followee: "user:wei", User: user, Weight: weight, Time: base + at})
	}
	weigh("user:early", 2, 1) // before the follow
	w.WaitIdle()
	publish(w, follow("w1", 0, "user:early", schemas.Follow, "user:wei"), follow("w2", 0, "user:later", schemas.Follow, "user:wei"))
	w.WaitIdle()
	weigh("user:later", 3, 5)
	weigh("user:later", 9, 4) // older
	weigh("user:stranger", 3, 1)
	w.WaitIdle()
	announce(w, "user:wei", pinOf("user:wei", 900, 0))
	w.WaitIdle()
	publish(w, follow("w3", 1, "user:early", schemas.Unfollow, "user:wei"))
	w.WaitIdle()
	publish(w, follow("w4", 2, "user:early", schemas.Follow, "user:wei"))
	w.WaitIdle()
	v := schemas.Version(base)
	expect(t, w, "user:wei", []brought{
		{"user:early", "pin:900", v, 2}, {"user:early", "pin:900", v, 2}, {"user:later", "pin:900", v, 3},
	})
}

func testBlocks(t *testing.T, w *proctest.Wire) {
	publish(w,
		follow("b1", 1, "user:a", schemas.Block, "user:blo"),
		follow("b2", 1, "user:a", schemas.Unblock, "user:blo"), // at the same time: loses
		follow("b3", 1, "user:a", schemas.Follow, "user:blo"),  // another register
		follow("b4", 1, "user:a", schemas.Block, "board:blo"))
	w.WaitIdle()
	want := map[string]schemas.Edge{
		"user:a block user:blo":   {User: "user:a", Other: "user:blo", Kind: schemas.BlockEdge, Live: true, Time: base + 1},
		"user:blo blocked user:a": {User: "user:blo", Other: "user:a", Kind: schemas.BlockedEdge, Live: true, Time: base + 1},
		"user:a follow user:blo":  {User: "user:a", Other: "user:blo", Kind: schemas.FollowEdge, Live: true, Time: base + 1},
	}
	if diff := gocmp.Diff(want, edgesOf(w, "user:blo")); diff != "" {
		t.Errorf("edges of the user (-want +got):\n%s", diff)
	}
	if got := len(edgesOf(w, "board:blo")); got != 1 {
		t.Errorf("%d edges of the board, want 1", got)
	}
}

func testDeadLetters(t *testing.T, w *proctest.Wire) {
	before := len(proctest.Drain(w, w.Streams.DeadLetters))
	const key = "user:bad"
	w.PublishBytes(topics.Follows, key, []byte("no record"))
	proctest.Publish(w, w.Streams.Follows, key, follow("d1", 0, "user:a", "hug", key))
	proctest.Publish(w, w.Streams.Follows, key, follow("d2", 0, "user:a", schemas.Follow, "user:other"))
	proctest.Publish(w, w.Streams.Publications, key, &schemas.Publication{Followee: key, PinVersion: schemas.PinVersion{Pin: "pin:x"}})
	proctest.Publish(w, w.Streams.EdgeWeights, key, &schemas.EdgeWeight{Followee: key, User: "user:a", Weight: -1})
	publish(w, follow("d3", 0, "user:a", schemas.Follow, key))
	w.WaitIdle()
	if got := len(proctest.Drain(w, w.Streams.DeadLetters)) - before; got != 5 {
		t.Errorf("%d dead letters, want 5", got)
	}
	if got := len(edgesOf(w, key)); got != 1 {
		t.Errorf("%d edges, want the good one alone", got)
	}
}

func testDeletedUsers(t *testing.T, w *proctest.Wire) {
	publish(w, follow("g1", 0, "user:gone", schemas.Follow, "user:del"), follow("g2", 0, "user:fan", schemas.Follow, "user:gone"))
	w.WaitIdle()
	if got := len(edgesOf(w, "user:gone")) + len(edgesOf(w, "user:del")); got != 0 {
		t.Errorf("%d edges, want none", got)
	}
	if got := w.Rows(topics.Fanout, "user:del"); len(got) != 0 {
		t.Errorf("rows %v, want none", got)
	}
}

func testSource(t *testing.T, w *proctest.Wire) {
	publish(w, follow("s1", 0, "user:src", schemas.Follow, "interest:x"), follow("s2", 0, "user:src", schemas.Follow, "user:src2"))
	w.WaitIdle()
	p := pinOf("user:src2", 1000, 0)
	announce(w, "interest:x", p)
	announce(w, "user:src2", p)
	w.WaitIdle()
	got := map[schemas.Source]int{}
	for _, r := range proctest.Drain(w, w.Streams.Deliveries) {
		if slices.Contains(r.Value.Users, "user:src") {
			got[r.Value.Source]++
		}
	}
	if diff := gocmp.Diff(map[schemas.Source]int{schemas.Following: 1, schemas.FromInterest: 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func testUnfollow(t *testing.T, w *proctest.Wire) {
	publish(w, follow("u1", 0, "user:fan", schemas.Follow, "user:unf"))
	w.WaitIdle()
	announce(w, "user:unf", pinOf("user:unf", 1100, 0))
	w.WaitIdle()
	publish(w, follow("u2", 1, "user:fan", schemas.Unfollow, "user:unf"))
	w.WaitIdle()
	announce(w, "user:unf", pinOf("user:unf", 1101, 1))
	w.WaitIdle()
	expect(t, w, "user:unf", []brought{{"user:fan", "pin:1100", schemas.Version(base), 1}})
}
