// Package conformance has the tests of feed stores: one suite, run for each implementation.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// store is a feed store as the pipeline uses it: materialize calls Write, and the feed service calls the other methods. The
// embedded store documents each method.
type store interface {
	feed.Store
	Write(ctx context.Context, b feedstore.Batch) error
}

// opener returns a store that keeps maxFeed items of a feed and is closed when the test ends. The store need not be empty:
// each test uses its own ids.
type opener func(t *testing.T, maxFeed int) store

// run runs the suite.
func run(t *testing.T, open opener) {
	for name, test := range map[string]func(*testing.T, opener){
		"unknown ids":                  testUnknown,
		"pages":                        testPages,
		"holes stay visible":           testHoles,
		"trimming":                     testTrimming,
		"trimming makes no hole":       testTrimmingWhileRead,
		"late below the trim position": testLateBelowTrimPosition,
		"swept entries":                testSwept,
		"edges: last wins":             testEdges,
		"the beginning of time":        testBeginningOfTime,
		"lists: order, paging":         testListPaging,
		"lists: many dead":             testListManyDead,
		"lists: bad place":             testListBadPlace,
		"adjacent ids":                 testNeighbors,
		"erased users":                 testErased,
		"rejected ids":                 testRejected,
		"ended context":                testEnded,
		"any order, repeated":          testAnyOrder,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

const top = math.MaxInt64

// fresh returns an id that no other test uses.
func fresh() string { return fmt.Sprintf("%016x", rand.Uint64()) }

func newUser() schemas.UserID { return schemas.UserID("user:" + fresh()) }

// entry returns an entry of the source following, or for every third position an exploration item.
func entry(user schemas.UserID, position int64) schemas.FeedEntry {
	source, pool := schemas.Following, schemas.Source("")
	if position%3 == 0 {
		source, pool = schemas.Explore, schemas.Related
	}
	return schemas.FeedEntry{User: user, Position: position, Time: schemas.Micros(position) * 1e6,
		ServedItem: schemas.ServedItem{
			Pin: schemas.PinID(fmt.Sprintf("pin:%s:%d", user, position)), Source: source, Pool: pool,
			Facets: schemas.Facets{Author: "user:author", Board: "board:b",
				Interests: []schemas.InterestID{"interest:a", "interest:b"}},
			RankScore: schemas.RankScore(float64(position) / 3), Created: schemas.Micros(-position),
		}}
}

func entries(user schemas.UserID, from, to int64) []schemas.FeedEntry {
	var all []schemas.FeedEntry
	for p := from; p <= to; p++ {
		all = append(all, entry(user, p))
	}
	return all
}

func write(t testing.TB, s store, b feedstore.Batch) {
	t.Helper()
	must.OK(t, s.Write(t.Context(), b))
}

func page(t testing.TB, s store, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64) {
	t.Helper()
	got, trimmed, err := s.Page(t.Context(), user, below, n)
	must.OK(t, err)
	return got, trimmed
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	expect.NoDiffBut(t, cmpopts.EquateEmpty(), got, want, "%s", what)
}

func positions(entries []schemas.FeedEntry) []int64 {
	return convert.All(entries, func(e schemas.FeedEntry) int64 { return e.Position })
}

func testUnknown(t *testing.T, open opener) {
	s, user := open(t, 100), newUser()
	got, trimmed := page(t, s, user, top, 10)
	same(t, "page", got, []schemas.FeedEntry(nil))
	same(t, "trim position", trimmed, int64(0))
	edges, err := s.Edges(t.Context(), user, []schemas.ID{"user:1"})
	same(t, "edges", edges, []schemas.Edge(nil))
	cards, err2 := s.Cards(t.Context(), []schemas.PinID{schemas.PinID("pin:" + fresh())})
	same(t, "cards", cards, map[schemas.PinID]schemas.Card{})
	deletedUsers, err3 := s.DeletedUsers(t.Context(), []schemas.UserID{user})
	same(t, "deleted_users", deletedUsers, map[schemas.UserID]bool{})
	list, next, err4 := s.List(t.Context(), schemas.Followee(user), "", 10)
	same(t, "list", list, []schemas.PinVersion(nil))
	same(t, "next", next, "")
	must.OK(t, errors.Join(err, err2, err3, err4))
}

// testNeighbors uses ids that are prefixes of one another, so that ambiguous keys would mix up their rows.
func testNeighbors(t *testing.T, open opener) {
	s, user := open(t, 100), newUser()
	longer := user + "0"
	write(t, s, feedstore.Batch{
		Entries: append(entries(user, 1, 2), entries(longer, 1, 4)...),
		Edges: []schemas.Edge{
			{User: user, Other: "board:1", Kind: schemas.FollowEdge, Live: true, Time: 1},
			{User: user, Other: "board:10", Kind: schemas.FollowEdge, Live: true, Time: 2},
			{User: longer, Other: "board:1", Kind: schemas.FollowEdge, Live: true, Time: 3},
		},
		Publications: []schemas.Publication{
			publication(schemas.Followee(user), "pin:1", 1, 1), publication(schemas.Followee(longer), "pin:2", 1, 2)},
		Deleted: []schemas.DeletedUser{{User: longer, Time: 1}},
	})
	got, _ := page(t, s, user, top, 10)
	same(t, "page", got, []schemas.FeedEntry{entry(user, 2), entry(user, 1)})
	edges := must.Get(s.Edges(t.Context(), user, []schemas.ID{"board:1"}))(t)
	same(t, "edges", edges, []schemas.Edge{{User: user, Other: "board:1", Kind: schemas.FollowEdge, Live: true, Time: 1}})
	list := listAll(t, s, schemas.Followee(user), 10)
	same(t, "list", list, []schemas.PinVersion{publication(schemas.Followee(user), "pin:1", 1, 1).PinVersion})
	deletedUsers := must.Get(s.DeletedUsers(t.Context(), []schemas.UserID{user, longer}))(t)
	same(t, "deleted_users", deletedUsers, map[schemas.UserID]bool{longer: true})
}

// testErased erases users next to users whose ids share a prefix with theirs, and repeats the erasure.
func testErased(t *testing.T, open opener) {
	s, user := open(t, 100), newUser()
	shorter, longer := user[:len(user)-1], user+"0"
	filled := func(u schemas.UserID) feedstore.Batch {
		p := publication(schemas.Followee(u), schemas.PinID("pin:"+u), 1, 1)
		return feedstore.Batch{
			Entries: entries(u, 1, 3), Publications: []schemas.Publication{p},
			Edges: []schemas.Edge{
				{User: u, Other: "board:1", Kind: schemas.FollowEdge, Live: true, Time: 1},
				{User: u, Other: "board:2", Kind: schemas.FollowEdge, Live: true, Time: 1},
			},
		}
	}
	for _, u := range []schemas.UserID{shorter, user, longer} {
		write(t, s, filled(u))
	}
	last := feedstore.Batch{
		Erased: []schemas.DeletedUser{{User: user, Time: 1 << 50}}, Deleted: []schemas.DeletedUser{{User: user, Time: 1}},
		Edges: []schemas.Edge{
			{User: longer, Other: "board:1", Kind: schemas.FollowEdge, Time: 9, Erased: true},
			{User: longer, Other: "board:2", Kind: schemas.BlockEdge, Time: 9, Erased: true}, // it does not exist
		},
	}
	write(t, s, last)
	write(t, s, last)
	for u, want := range map[schemas.UserID]int{shorter: 2, user: 0, longer: 1} {
		got, trimmed := page(t, s, u, top, 10)
		list := listAll(t, s, schemas.Followee(u), 10)
		edges, err := s.Edges(t.Context(), u, []schemas.ID{"board:1", "board:2"})
		if left := u != user; err != nil || trimmed != 0 || len(got) > 0 != left || len(list) > 0 != left || len(edges) != want {
			t.Errorf("%s: %d entries, trim position %d, %d pins, %d edges, %v; want %d edges", u, len(got), trimmed, len(list), len(edges), err, want)
		}
	}
}

func testRejected(t *testing.T, open opener) {
	s, user := open(t, 100), newUser()
	for name, bad := range map[string]feedstore.Batch{
		"zero byte in a user":  {Entries: []schemas.FeedEntry{{User: "user:a\x00b", Position: 1}}},
		"no user":              {Entries: []schemas.FeedEntry{{Position: 1}}},
		"zero byte in a pin":   {Cards: []schemas.Card{{PinVersion: schemas.PinVersion{Pin: "pin:\x00"}}}},
		"unknown kind of edge": {Edges: []schemas.Edge{{User: user, Other: "user:1", Kind: "likes"}}},
	} {
		bad.Entries = append(bad.Entries, entry(user, 1))
		expect.Fails(t, s.Write(t.Context(), bad), "%s", name)
	}
	got, _ := page(t, s, user, top, 10)
	same(t, "written with a rejected record", got, []schemas.FeedEntry(nil))
}

func testEnded(t *testing.T, open opener) {
	s, user := open(t, 100), newUser()
	full := feedstore.Batch{Entries: entries(user, 1, 1), Publications: []schemas.Publication{publication(schemas.Followee(user), "pin:1", 1, 1)},
		Edges: []schemas.Edge{{User: user, Other: "board:1", Kind: schemas.FollowEdge, Live: true, Time: 1}}}
	write(t, s, full)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err1 := s.Page(ctx, user, top, 1)
	_, err2 := s.Edges(ctx, user, []schemas.ID{"board:1"})
	_, err3 := s.Cards(ctx, []schemas.PinID{"pin:1"})
	_, err4 := s.DeletedUsers(ctx, []schemas.UserID{user})
	_, _, err5 := s.List(ctx, schemas.Followee(user), "", 1)
	for i, err := range []error{err1, err2, err3, err4, err5, s.Write(ctx, full)} {
		expect.Is(t, err, context.Canceled, "call %d", i+1)
	}
}

// testAnyOrder writes the same records in random order, in random batches and with repeats. It compares all reads with a
// model that has every record.
func testAnyOrder(t *testing.T, open opener) {
	s := open(t, 10)
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt)
		writes := w.singles()
		for range rapid.IntRange(0, len(writes)).Draw(rt, "repeats") {
			writes = append(writes, writes[rapid.IntRange(0, len(writes)-1).Draw(rt, "again")])
		}
		writes = rapid.Permutation(writes).Draw(rt, "order")
		for len(writes) > 0 {
			n := rapid.IntRange(1, len(writes)).Draw(rt, "together")
			must.OK(rt, s.Write(t.Context(), join(writes[:n])))
			writes = writes[n:]
		}
		w.check(rt, t.Context(), s)
	})
}
