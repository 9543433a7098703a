package feed

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func (r *rig) older(t testing.TB, below int64, limit int) Page {
	t.Helper()
	cursor := r.cursors.sealFeed(feedCursor{user: viewer, feed: "home", below: below})
	return must.Get(r.Older(t.Context(), viewer, cursor, limit))(t)
}

func TestOlder(t *testing.T) {
	hide := func(positions ...int64) func(*rig) {
		return func(r *rig) {
			for _, p := range positions {
				e := entry(p)
				r.store.cards[e.Pin] = schemas.Card{PinVersion: schemas.PinVersion{Pin: e.Pin, PinContent: schemas.PinContent{Deleted: true}}}
			}
		}
	}
	for _, c := range []struct {
		name     string
		below    int64
		limit    int
		setup    func(r *rig)
		want     string
		next     int64
		degraded string
	}{
		{name: "continues below the cursor", below: 8, limit: 3, want: "f7 f6 f5", next: 5},
		{name: "to the end", below: 3, limit: 10, want: "f2 f1", next: -1},
		{name: "exactly to the end", below: 3, limit: 2, want: "f2 f1", next: -1},
		{name: "past the end", below: 1, limit: 2, want: "", next: -1},
		{name: "from the newest", below: math.MaxInt64, limit: 2, want: "f10 f9", next: 9},
		{name: "from the newest of an empty feed", below: math.MaxInt64, limit: 2, setup: func(r *rig) { r.store.entries = nil }, want: "", next: -1},
		{name: "to the trim position", below: 8, limit: 10, setup: func(r *rig) { r.store.trimmed = 5 }, want: "f7 f6", next: -1},
		{name: "trimmed since the last page", below: 4, limit: 10, setup: func(r *rig) { r.store.trimmed = 5 }, want: "", next: -1},
		{name: "hidden items skipped", below: 9, limit: 3, setup: hide(8, 6, 5), want: "f7 f4 f3", next: 3},
		{name: "hidden at the end", below: 4, limit: 3, setup: hide(1, 2), want: "f3", next: -1},
		{name: "all hidden", below: 11, limit: 3, setup: hide(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), want: "", next: -1},
		{name: "swept item skipped", below: 9, limit: 2, setup: func(r *rig) {
			r.store.materialize(schemas.FeedEntry{User: viewer, Position: 7})
		}, want: "f8 f6", next: 6},
		{name: "a hole", below: 8, limit: 5, setup: func(r *rig) { delete(r.store.entries, 5) },
			want: "f7 f6", next: 6, degraded: "stale"},
		{name: "a hole at the start", below: 8, limit: 5, setup: func(r *rig) { delete(r.store.entries, 7) },
			want: "", next: 8, degraded: "stale"},
		{name: "ends above the trim position", below: 8, limit: 9, setup: func(r *rig) {
			for p := int64(1); p <= 3; p++ {
				delete(r.store.entries, p)
			}
		}, want: "f7 f6 f5 f4", next: 4, degraded: "stale"},
		{name: "no hole at the trim position", below: 8, limit: 9, setup: func(r *rig) {
			r.store.trimmed = 3
			delete(r.store.entries, 3)
		}, want: "f7 f6 f5 f4", next: -1},
		{name: "erased user", below: 8, limit: 5, setup: func(r *rig) {
			r.store.entries, r.store.deletedUsers[viewer] = nil, true
		}, want: "", next: -1},
		{name: "user without stored entries", below: 8, limit: 5, setup: func(r *rig) { r.store.entries = nil },
			want: "", next: 8, degraded: "stale"},
		{name: "store unavailable", below: 8, limit: 3, setup: func(r *rig) { r.store.feed.err = errFake },
			want: "", next: 8, degraded: "store"},
		{name: "cards unavailable", below: 8, limit: 3, setup: func(r *rig) { r.store.facts.err = errFake },
			want: "", next: 8, degraded: "store"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in which waiting for a hole takes no real time
				r := stocked(t)
				if c.setup != nil {
					c.setup(r)
				}
				page := r.older(t, c.below, c.limit)
				same(t, "items", names(page.Items), c.want)
				same(t, "next", r.below(t, page.Next), c.next)
				same(t, "degraded", strings.Join(page.Degraded, " "), c.degraded)
				expect.Empty(t, r.gen.asked, "requested chunks of an older page")
			})
		})
	}
}

// After MaxSkippedItems hidden items a page is short or even empty, and the next page continues.
func TestOlder_SkipsAtMostMaxSkipped(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxSkippedItems = 40 })
	r.store.follow("user:friend", true)
	r.store.materialize(entriesDown(300, 1)...)
	for p := int64(20); p <= 290; p++ { // 271 hidden ones in a row
		r.store.cards[entry(p).Pin] = schemas.Card{PinVersion: schemas.PinVersion{PinContent: schemas.PinContent{Deleted: true}}}
	}
	var got []string
	var pages []int
	for below := int64(301); below > 0; {
		page := r.older(t, below, 15)
		got = append(got, names(page.Items))
		pages = append(pages, len(page.Items))
		if below = r.below(t, page.Next); len(page.Degraded) > 0 || len(pages) > 20 {
			t.Fatalf("degraded %v after %d pages", page.Degraded, len(pages))
		}
	}
	same(t, "items on the pages", pages, []int{10, 0, 0, 0, 0, 0, 15, 4})
	same(t, "newest and oldest", got[0]+" … "+got[7], "f300 f299 f298 f297 f296 f295 f294 f293 f292 f291 … f4 f3 f2 f1")
}

// Hidden items below the shown ones must not cost one read each.
func TestOlder_BatchesReadsPastHiddenItems(t *testing.T) {
	r := newRig(t, nil)
	r.store.follow("user:friend", true)
	r.store.materialize(entriesDown(600, 1)...)
	for p := int64(90); p <= 576; p++ {
		r.store.cards[entry(p).Pin] = schemas.Card{PinVersion: schemas.PinVersion{PinContent: schemas.PinContent{Deleted: true}}}
	}
	page := r.older(t, 601, 25) // 24 items are read at once, the last one after 487 hidden ones
	same(t, "oldest shown", page.Items[len(page.Items)-1].ID, entry(89).Pin)
	expect.AtMost(t, r.store.reads, 15, "reads")
}

func TestVisit_ShowsPinOnce(t *testing.T) {
	r := stocked(t)
	e := entry(9)
	e.ServedItem = item("b") // as if the generator had returned an item that is already materialized
	r.gen.chunk.Recent[1] = e
	r.store.materialize(e)
	page := must.Get(r.Visit(t.Context(), viewer, "home", 6))(t)
	same(t, "items", names(page.Items), "*a *b *c f10 f8 f7")
}

// Package visibility has the rules. The cases show that the reader supplies the facts that the rules depend on.
func TestReader_AppliesVisibility(t *testing.T) {
	const stranger = schemas.UserID("user:stranger")
	type edge struct {
		other schemas.ID
		kind  schemas.EdgeKind
		live  bool
	}
	follow := func(id schemas.ID) edge { return edge{id, schemas.FollowEdge, true} }
	unfollow := func(id schemas.ID) edge { return edge{id, schemas.FollowEdge, false} }
	block := func(id schemas.ID) edge { return edge{id, schemas.BlockEdge, true} }
	pin := func(s schemas.Source, f schemas.Facets) schemas.ServedItem {
		return schemas.ServedItem{Pin: "pin:1", Source: s, Facets: f}
	}
	explored := func(pool schemas.Source) schemas.ServedItem {
		it := pin(schemas.Explore, schemas.Facets{Author: stranger, Board: "board:b", Interests: []schemas.InterestID{"interest:x"}})
		it.Pool = pool
		return it
	}
	full := schemas.Facets{Author: stranger, Board: "board:b", Interests: []schemas.InterestID{"interest:x", "interest:y"}}
	card := func(f schemas.Facets) *schemas.Card {
		return &schemas.Card{PinVersion: schemas.PinVersion{PinContent: schemas.PinContent{Facets: f}}}
	}
	for _, c := range []struct {
		name        string
		item        schemas.ServedItem
		edges       []edge
		card        *schemas.Card
		deletedUser schemas.UserID
		want        bool
	}{
		{name: "no edge", item: pin(schemas.Following, full), want: false},
		{name: "author followed", item: pin(schemas.Following, full), edges: []edge{follow("user:stranger")}, want: true},
		{name: "author unfollowed, an interest justifies it", item: pin(schemas.Following, full),
			edges: []edge{unfollow("user:stranger"), follow("interest:y")}, want: true},
		{name: "unfollowed", item: pin(schemas.FromInterest, full), edges: []edge{unfollow("interest:x")}, want: false},
		{name: "related, unfollowed", item: pin(schemas.Related, full), edges: []edge{unfollow("user:stranger")}, want: true},
		{name: "explored of related, unfollowed", item: explored(schemas.Related), edges: []edge{unfollow("user:stranger")}, want: true},
		{name: "explored of following, unfollowed", item: explored(schemas.Following), edges: []edge{unfollow("board:b")}, want: false},

		{name: "author blocked", item: pin(schemas.Related, full), edges: []edge{block("user:stranger")}, want: false},
		{name: "blocked by the author", item: pin(schemas.Related, full),
			edges: []edge{{"user:stranger", schemas.BlockedEdge, true}}, want: false},
		{name: "interest blocked", item: pin(schemas.Related, full), edges: []edge{block("interest:y")}, want: false},
		{name: "unblocked", item: pin(schemas.Related, full),
			edges: []edge{{"user:stranger", schemas.BlockEdge, false}, {"user:stranger", schemas.BlockedEdge, false}}, want: true},

		{name: "deleted", item: pin(schemas.Related, full),
			card: &schemas.Card{PinVersion: schemas.PinVersion{PinContent: schemas.PinContent{Facets: full, Deleted: true}}}, want: false},
		{name: "author deleted", item: pin(schemas.Related, full), deletedUser: stranger, want: false},
		{name: "own pin", item: pin(schemas.Related, schemas.Facets{Author: viewer}), want: false},

		{name: "moved to a followed board", item: pin(schemas.Following, full), edges: []edge{follow("board:new")},
			card: card(schemas.Facets{Author: stranger, Board: "board:new"}), want: true},
		{name: "moved off the followed board", item: pin(schemas.Following, full), edges: []edge{follow("board:b")},
			card: card(schemas.Facets{Author: stranger, Board: "board:new"}), want: false},
		{name: "moved to a blocked board", item: pin(schemas.Related, full), edges: []edge{block("board:new")},
			card: card(schemas.Facets{Author: stranger, Board: "board:new"}), want: false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			for _, e := range c.edges {
				r.store.edge(e.other, e.kind, e.live)
			}
			if c.card != nil {
				c.card.Pin = c.item.Pin
				r.store.cards[c.item.Pin] = *c.card
			}
			r.store.deletedUsers[c.deletedUser] = c.deletedUser != ""
			r.store.materialize(schemas.FeedEntry{User: viewer, Position: 1, ServedItem: c.item})
			page := r.older(t, 2, 1)
			if got := len(page.Items) == 1; got != c.want || page.Next != nil {
				t.Errorf("visible: got %v, want %v (next %v)", got, c.want, page.Next)
			}
		})
	}
}

// The generator decides that an edge justifies a new item. Whatever hides an item also hides a new one, from the next visit on.
func TestVisit_ShowsNewItemWithoutStoredEdge(t *testing.T) {
	r := newRig(t, nil)
	r.gen.chunk.Served.Items = []schemas.ServedItem{item("a"), item("b")}
	visit := func(what, want string) {
		t.Helper()
		same(t, what, names(must.Get(r.Visit(t.Context(), viewer, "home", 5))(t).Items), want)
	}
	visit("without the edge", "*a *b")
	r.store.edge("user:friend", schemas.BlockEdge, true)
	visit("blocked", "")
	r.store.edge("user:friend", schemas.BlockEdge, false)
	visit("unblocked", "*a *b")
	r.store.deletedUsers["user:friend"] = true
	visit("author deleted", "")
}

// pinsOf returns a list of n versions of pins by the author.
func pinsOf(author schemas.UserID, n int) (pins []schemas.PinVersion) {
	for i := range n {
		pins = append(pins, schemas.PinVersion{Pin: schemas.PinID(fmt.Sprintf("pin:l%02d", i)), PinContent: schemas.PinContent{Created: schemas.Micros(n-i) * 1e6, Facets: schemas.Facets{Author: author}}})
	}
	return pins
}

func TestList(t *testing.T) {
	newList := func(t *testing.T) *rig {
		r := newRig(t, func(c *Config) { c.MaxSkippedItems = 6 })
		r.store.lists["board:1"] = pinsOf("user:friend", 12)
		return r
	}
	read := func(t *testing.T, r *rig, limit int) (got []string, degraded []string) {
		t.Helper()
		for cursor := ""; ; {
			page, err := r.List(t.Context(), "board:1", "", cursor, limit)
			if err != nil || len(page.Items) > limit {
				t.Fatalf("%d items, %v", len(page.Items), err)
			}
			for _, p := range page.Items {
				got = append(got, strings.TrimPrefix(string(p.ID), "pin:"))
			}
			if degraded = page.Degraded; page.Next == nil || len(degraded) > 0 || len(got) > 100 {
				return got, degraded
			}
			cursor = *page.Next
		}
	}
	all := strings.Fields("l00 l01 l02 l03 l04 l05 l06 l07 l08 l09 l10 l11")
	for _, limit := range []int{1, 5, 12, 100} {
		got, _ := read(t, newList(t), limit)
		same(t, fmt.Sprint("by ", limit), got, all)
	}
	t.Run("omits deleted pins", func(t *testing.T) {
		r := newList(t)
		for _, p := range r.store.lists["board:1"][1:11] { // more in a row than MaxSkipped
			r.store.cards[p.Pin] = schemas.Card{PinVersion: schemas.PinVersion{Pin: p.Pin, PinContent: schemas.PinContent{Deleted: true}}}
		}
		got, _ := read(t, r, 2)
		same(t, "pins", got, []string{"l00", "l11"})
	})
	t.Run("omits pins of a deleted author", func(t *testing.T) {
		r := newList(t)
		r.store.deletedUsers["user:friend"] = true
		got, _ := read(t, r, 5)
		same(t, "pins", got, []string(nil))
	})
	t.Run("store unavailable", func(t *testing.T) {
		r := newList(t)
		first := must.Get(r.List(t.Context(), "board:1", "", "", 5))(t)
		r.store.list.err = errFake
		second, err := r.List(t.Context(), "board:1", "", *first.Next, 5)
		if err != nil || second.Next == nil {
			t.Fatalf("next %v, %v", second.Next, err)
		}
		same(t, "degraded", second.Degraded, []string{"store"})
		same(t, "items", second.Items, []Pin{})
		r.store.list.err = nil
		again := must.Get(r.List(t.Context(), "board:1", "", *second.Next, 5))(t)
		same(t, "continues at", again.Items[0].ID, schemas.PinID("pin:l05"))
	})
}
