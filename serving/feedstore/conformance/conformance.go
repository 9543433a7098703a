// Package conformance is the test suite of feed stores, embedded and remote. The test of an implementation calls Run.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// Store is a feed store as the pipeline uses it: materialize calls Write, and the feed service calls the other methods. The
// embedded store documents each method.
type Store interface {
	feed.Store
	Write(ctx context.Context, b feedstore.Batch) error
}

// Opener returns a store that keeps maxFeed items of a feed and is closed when the test ends. The store need not be empty:
// each test uses its own ids.
type Opener func(t *testing.T, maxFeed int) Store

// Run runs the suite.
func Run(t *testing.T, open Opener) {
	for name, test := range map[string]func(*testing.T, Opener){
		"unknown ids":           testUnknown,
		"pages":                 testPages,
		"holes stay visible":    testHoles,
		"trimming":              testTrimming,
		"no hole by trimming":   testTrimmingWhileRead,
		"late below the floor":  testLateBelowFloor,
		"swept entries":         testSwept,
		"edges: last wins":      testEdges,
		"the beginning of time": testBeginningOfTime,
		"lists: order, paging":  testListPaging,
		"lists: many dead":      testListManyDead,
		"lists: bad place":      testListBadPlace,
		"ids beside each other": testNeighbours,
		"who is erased":         testErased,
		"refused ids":           testRefused,
		"ended context":         testEnded,
		"any order, repeated":   testAnyOrder,
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

func write(t testing.TB, s Store, b feedstore.Batch) {
	t.Helper()
	if err := s.Write(t.Context(), b); err != nil {
		t.Fatalf("Write: %v", err)
	}
}

func page(t testing.TB, s Store, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64) {
	t.Helper()
	got, floor, err := s.Page(t.Context(), user, below, n)
	if err != nil {
		t.Fatalf("Page(%s, %d, %d): %v", user, below, n, err)
	}
	return got, floor
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: want -, got +:\n%s", what, diff)
	}
}

func positions(entries []schemas.FeedEntry) []int64 {
	var all []int64
	for _, e := range entries {
		all = append(all, e.Position)
	}
	return all
}

func testUnknown(t *testing.T, open Opener) {
	s, user := open(t, 100), newUser()
	got, floor := page(t, s, user, top, 10)
	same(t, "page", got, []schemas.FeedEntry(nil))
	same(t, "floor", floor, int64(0))
	edges, err := s.Edges(t.Context(), user, []schemas.ID{"user:1"})
	same(t, "edges", edges, []schemas.Edge(nil))
	cards, err2 := s.Cards(t.Context(), []schemas.PinID{schemas.PinID("pin:" + fresh())})
	same(t, "cards", cards, map[schemas.PinID]schemas.Card{})
	deletedUsers, err3 := s.DeletedUsers(t.Context(), []schemas.UserID{user})
	same(t, "deleted_users", deletedUsers, map[schemas.UserID]bool{})
	list, next, err4 := s.List(t.Context(), schemas.Followee(user), "", 10)
	same(t, "list", list, []schemas.PinVersion(nil))
	same(t, "next", next, "")
	if err := errors.Join(err, err2, err3, err4); err != nil {
		t.Error(err)
	}
}

func testPages(t *testing.T, open Opener) {
	s, user := open(t, 100), newUser()
	write(t, s, feedstore.Batch{Entries: entries(user, 1, 30)})
	for _, c := range []struct {
		name  string
		below int64
		n     int
		want  []int64
	}{
		{"from the newest", top, 3, []int64{30, 29, 28}},
		{"below one", 28, 3, []int64{27, 26, 25}},
		{"to the end", 4, 10, []int64{3, 2, 1}},
		{"behind the end", 1, 10, nil},
		{"at nothing", 0, 10, nil},
		{"above all", 1000, 1, []int64{30}},
		{"none asked", top, 0, nil},
	} {
		got, _ := page(t, s, user, c.below, c.n)
		same(t, c.name, positions(got), c.want)
	}
	got, _ := page(t, s, user, 8, 1)
	same(t, "whole entry", got, []schemas.FeedEntry{entry(user, 7)})
}

func testHoles(t *testing.T, open Opener) {
	s, user := open(t, 100), newUser()
	write(t, s, feedstore.Batch{Entries: append(entries(user, 3, 4), entry(user, 6))})
	got, floor := page(t, s, user, top, 10)
	same(t, "positions", positions(got), []int64{6, 4, 3})
	same(t, "floor", floor, int64(0))
}

func testTrimming(t *testing.T, open Opener) {
	const keep = 40
	s, user := open(t, keep), newUser()
	for p := int64(1); p <= 500; p++ {
		write(t, s, feedstore.Batch{Entries: entries(user, p, p)})
		if p%7 != 0 {
			continue
		}
		got, floor := page(t, s, user, top, 1000)
		if n := p - floor; n < min(p, keep) || n > keep+keep/10 {
			t.Fatalf("after %d: floor %d keeps %d, want %d to %d", p, floor, n, keep, keep+keep/10)
		}
		if len(got) != int(p-floor) || got[0].Position != p || got[len(got)-1].Position != floor+1 {
			t.Fatalf("after %d: got %v above floor %d", p, positions(got), floor)
		}
	}
}

// testTrimmingWhileRead reads pages while they are trimmed. The floor and the rows must be consistent, or the caller
// mistakes trimmed entries for entries that have not arrived.
func testTrimmingWhileRead(t *testing.T, open Opener) {
	s, user := open(t, 20), newUser()
	write(t, s, feedstore.Batch{Entries: entries(user, 1, 20)})
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	defer writer.Wait()
	defer stop()
	writer.Go(func() {
		for p := int64(21); ctx.Err() == nil; p++ {
			if err := s.Write(ctx, feedstore.Batch{Entries: entries(user, p, p)}); err != nil && ctx.Err() == nil {
				t.Errorf("Write: %v", err)
				return
			}
		}
	})
	for trims, last := 0, int64(0); trims < 20; {
		got, floor := page(t, s, user, top, 1000)
		if len(got) == 0 || int64(len(got)) != got[0].Position-floor {
			t.Fatalf("got %v above floor %d: a hole", positions(got), floor)
		}
		if floor > last {
			trims, last = trims+1, floor
		}
	}
}

func testLateBelowFloor(t *testing.T, open Opener) {
	s, user := open(t, 20), newUser()
	write(t, s, feedstore.Batch{Entries: entries(user, 1, 60)})
	before, floor := page(t, s, user, top, 100)
	if floor < 40 {
		t.Fatalf("floor %d, want 40", floor)
	}
	odd := entry(user, 40)
	odd.Time = 1e12                           // by a fast clock: later than all entries after it
	late := append(entries(user, 1, 30), odd) // the log is read again from the start
	write(t, s, feedstore.Batch{Entries: late})
	got, again := page(t, s, user, top, 100)
	same(t, "entries", got, before)
	same(t, "floor", again, floor)
}

func testSwept(t *testing.T, open Opener) {
	s, user := open(t, 100), newUser()
	swept := schemas.FeedEntry{User: user, Position: 2, Time: 1}
	for name, batches := range map[string][][]schemas.FeedEntry{
		"sweep last":  {entries(user, 1, 3), {swept}},
		"sweep first": {{swept}, entries(user, 1, 3)},
	} {
		for _, b := range batches {
			write(t, s, feedstore.Batch{Entries: b})
		}
		got, _ := page(t, s, user, top, 10)
		same(t, name, got, []schemas.FeedEntry{entry(user, 3), swept, entry(user, 1)})
	}
}

func testEdges(t *testing.T, open Opener) {
	s := open(t, 100)
	at := func(k schemas.EdgeKind, live bool, time schemas.Micros) schemas.Edge {
		return schemas.Edge{Kind: k, Live: live, Time: time}
	}
	for _, c := range []struct {
		name string
		a, b schemas.Edge
		want schemas.Edge
	}{
		{"later unfollow", at(schemas.FollowEdge, true, 1), at(schemas.FollowEdge, false, 2), at(schemas.FollowEdge, false, 2)},
		{"later follow", at(schemas.FollowEdge, false, 1), at(schemas.FollowEdge, true, 2), at(schemas.FollowEdge, true, 2)},
		{"unfollow wins a tie", at(schemas.FollowEdge, true, 5), at(schemas.FollowEdge, false, 5), at(schemas.FollowEdge, false, 5)},
		{"block wins a tie", at(schemas.BlockEdge, true, 5), at(schemas.BlockEdge, false, 5), at(schemas.BlockEdge, true, 5)},
		{"blocked wins a tie", at(schemas.BlockedEdge, true, 5), at(schemas.BlockedEdge, false, 5), at(schemas.BlockedEdge, true, 5)},
		{"unblock later", at(schemas.BlockEdge, true, 5), at(schemas.BlockEdge, false, 6), at(schemas.BlockEdge, false, 6)},
		{"before 1970", at(schemas.FollowEdge, true, -5), at(schemas.FollowEdge, false, -6), at(schemas.FollowEdge, true, -5)},
	} {
		for _, order := range [][]schemas.Edge{{c.a, c.b}, {c.b, c.a}} {
			user, other := newUser(), schemas.ID("user:"+fresh())
			for _, e := range order {
				e.User, e.Other = user, other
				write(t, s, feedstore.Batch{Edges: []schemas.Edge{e}})
			}
			want := c.want
			want.User, want.Other = user, other
			got, err := s.Edges(t.Context(), user, []schemas.ID{other, "user:none", other})
			if err != nil {
				t.Fatal(err)
			}
			same(t, c.name, got, []schemas.Edge{want})
		}
	}
}

// testBeginningOfTime writes records at the minimum time, which a store may or may not distinguish from the next one.
func testBeginningOfTime(t *testing.T, open Opener) {
	s, user, other := open(t, 100), newUser(), schemas.ID("user:"+fresh())
	write(t, s, feedstore.Batch{
		Edges:   []schemas.Edge{{Kind: schemas.FollowEdge, Live: true, User: user, Other: other, Time: math.MinInt64}},
		Deleted: []schemas.DeletedUser{{User: user, Time: math.MinInt64}},
	})
	edges, err := s.Edges(t.Context(), user, []schemas.ID{other})
	if err != nil || len(edges) != 1 || !edges[0].Live || edges[0].Time > math.MinInt64+1 {
		t.Errorf("edges %+v, %v, want the one of the beginning of time", edges, err)
	}
	deletedUsers, err := s.DeletedUsers(t.Context(), []schemas.UserID{user})
	if err != nil || !deletedUsers[user] {
		t.Errorf("deleted users %v, %v, want %s", deletedUsers, err, user)
	}
	erased := schemas.Edge{Kind: schemas.FollowEdge, User: user, Other: other, Time: math.MinInt64, Erased: true}
	write(t, s, feedstore.Batch{Edges: []schemas.Edge{erased}})
	if edges, err := s.Edges(t.Context(), user, []schemas.ID{other}); err != nil || len(edges) > 0 {
		t.Errorf("edges %+v, %v, want none after their erasure", edges, err)
	}
}

func publication(followee schemas.Followee, pin schemas.PinID, v schemas.Version, created schemas.Micros) schemas.Publication {
	return schemas.Publication{Followee: followee, PinVersion: schemas.PinVersion{
		Pin: pin, Version: v, PinContent: schemas.PinContent{Created: created, Facets: schemas.Facets{Author: schemas.UserID(followee)}}, Quality: 1}}
}

// listAll reads all pages of a list, n pins at a time.
func listAll(t testing.TB, s Store, followee schemas.Followee, n int) (all []schemas.PinVersion) {
	t.Helper()
	for from, turns := "", 0; ; turns++ {
		pins, next, err := s.List(t.Context(), followee, from, n)
		if err != nil {
			t.Fatalf("List(%s, %q, %d): %v", followee, from, n, err)
		}
		if len(pins) > n || turns > 10_000 {
			t.Fatalf("List(%s, %q, %d): %d pins on page %d", followee, from, n, len(pins), turns)
		}
		if all = append(all, pins...); next == "" {
			return all
		}
		from = next
	}
}

func testListPaging(t *testing.T, open Opener) {
	s, author := open(t, 100), schemas.Followee(newUser())
	var b feedstore.Batch
	for i := range 23 {
		// Three pins share each creation time, and one is before 1970.
		p := publication(author, schemas.PinID(fmt.Sprintf("pin:%02d/x", i)), 1, schemas.Micros(i/3-1)*1e6)
		b.Publications = append(b.Publications, p)
	}
	write(t, s, b)
	want := sortedPins(b.Publications)
	for _, n := range []int{1, 2, 23, 24, 100} {
		same(t, fmt.Sprintf("by %d", n), listAll(t, s, author, n), want)
	}
	pins, next, err := s.List(t.Context(), author, "", 23)
	if len(pins) != 23 || next != "" || err != nil {
		t.Errorf("whole list: %d pins, next %q, %v: want 23, none", len(pins), next, err)
	}
	newer := publication(author, "pin:new", 1, 99e6)
	_, next, _ = s.List(t.Context(), author, "", 5)
	write(t, s, feedstore.Batch{Publications: []schemas.Publication{newer}})
	rest, _, err := s.List(t.Context(), author, next, 100)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "page two after a new pin", rest, want[5:])
}

func sortedPins(pubs []schemas.Publication) []schemas.PinVersion {
	var pins []schemas.PinVersion
	for _, p := range pubs {
		pins = append(pins, p.PinVersion)
	}
	slices.SortFunc(pins, func(a, b schemas.PinVersion) int {
		if a.Created != b.Created {
			return int(b.Created - a.Created)
		}
		return strings.Compare(string(a.Pin), string(b.Pin))
	})
	return pins
}

func testListManyDead(t *testing.T, open Opener) {
	s, author := open(t, 100), schemas.Followee(newUser())
	var b feedstore.Batch
	for i := range 1200 {
		p := publication(author, schemas.PinID(fmt.Sprintf("pin:%04d", i)), 1, schemas.Micros(i))
		b.Publications = append(b.Publications, p)
		if i > 2 {
			p.Version, p.Deleted = 2, true
			b.Publications = append(b.Publications, p)
		}
	}
	write(t, s, b)
	same(t, "what is left", listAll(t, s, author, 2), sortedPins(b.Publications[:3]))
}

func testListBadPlace(t *testing.T, open Opener) {
	s := open(t, 100)
	for _, from := range []string{"x", "/", "1", "one/pin:1", "99999999999999999999/pin:1"} {
		if _, _, err := s.List(t.Context(), "user:1", from, 10); !errors.Is(err, feedstore.ErrBadPlace) {
			t.Errorf("List from %q: got %v, want %v", from, err, feedstore.ErrBadPlace)
		}
	}
}

// testNeighbours uses ids that are prefixes of one another, so that ambiguous keys would mix up their rows.
func testNeighbours(t *testing.T, open Opener) {
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
	edges, err := s.Edges(t.Context(), user, []schemas.ID{"board:1"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "edges", edges, []schemas.Edge{{User: user, Other: "board:1", Kind: schemas.FollowEdge, Live: true, Time: 1}})
	list := listAll(t, s, schemas.Followee(user), 10)
	same(t, "list", list, []schemas.PinVersion{publication(schemas.Followee(user), "pin:1", 1, 1).PinVersion})
	deletedUsers, err := s.DeletedUsers(t.Context(), []schemas.UserID{user, longer})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "deleted_users", deletedUsers, map[schemas.UserID]bool{longer: true})
}

// testErased erases users next to users whose ids share a prefix with theirs, and repeats the erasure.
func testErased(t *testing.T, open Opener) {
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
		got, floor := page(t, s, u, top, 10)
		list := listAll(t, s, schemas.Followee(u), 10)
		edges, err := s.Edges(t.Context(), u, []schemas.ID{"board:1", "board:2"})
		if left := u != user; err != nil || floor != 0 || len(got) > 0 != left || len(list) > 0 != left || len(edges) != want {
			t.Errorf("%s: %d entries, floor %d, %d pins, %d edges, %v; want %d edges", u, len(got), floor, len(list), len(edges), err, want)
		}
	}
}

func testRefused(t *testing.T, open Opener) {
	s, user := open(t, 100), newUser()
	for name, bad := range map[string]feedstore.Batch{
		"zero byte in a user":  {Entries: []schemas.FeedEntry{{User: "user:a\x00b", Position: 1}}},
		"no user":              {Entries: []schemas.FeedEntry{{Position: 1}}},
		"zero byte in a pin":   {Cards: []schemas.Card{{PinVersion: schemas.PinVersion{Pin: "pin:\x00"}}}},
		"unknown kind of edge": {Edges: []schemas.Edge{{User: user, Other: "user:1", Kind: "likes"}}},
	} {
		bad.Entries = append(bad.Entries, entry(user, 1))
		if err := s.Write(t.Context(), bad); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	got, _ := page(t, s, user, top, 10)
	same(t, "written beside what is refused", got, []schemas.FeedEntry(nil))
}

func testEnded(t *testing.T, open Opener) {
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
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: got %v, want %v", i+1, err, context.Canceled)
		}
	}
}

// testAnyOrder writes the same records in random order, in random batches and with repeats. It compares all reads with a
// model that knows every record.
func testAnyOrder(t *testing.T, open Opener) {
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
			if err := s.Write(t.Context(), join(writes[:n])); err != nil {
				rt.Fatalf("Write: %v", err)
			}
			writes = writes[n:]
		}
		w.check(rt, t.Context(), s)
	})
}
