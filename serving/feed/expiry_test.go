package feed

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

const day = 24 * time.Hour

// aged returns the stocked rig with a TTL of a day. The lower half of its materialized feed was served two days ago, and the
// upper half an hour ago. The store lacks the given positions.
func aged(t *testing.T, lacks ...int64) *rig {
	r := stocked(t)
	r.deps.TTL = day
	recent := r.gen.chunk.Recent
	for p := range r.store.entries {
		r.store.entries[p] = r.served(p)
	}
	for i := range recent {
		recent[i] = r.served(recent[i].Position)
	}
	for _, p := range lacks {
		delete(r.store.entries, p)
	}
	return r
}

// served returns an entry of the rig's feed with its time.
func (r *rig) served(position int64) schemas.FeedEntry {
	e, age := entry(position), time.Hour
	if position <= 5 {
		age = 2 * day
	}
	e.Time = schemas.MicrosOf(time.Now().Add(-age))
	return e
}

// A feed ends where the store's TTL has removed entries, and has a hole where the TTL cannot have removed one.
func TestPage_EndsAtExpiredEntries(t *testing.T) {
	expired := []int64{1, 2, 3, 4, 5}
	all := append([]int64{6, 7, 8, 9, 10}, expired...)
	for _, c := range []struct {
		name     string
		lacks    []int64
		ttl      time.Duration
		below    int64 // of an older page; 0: a visit
		limit    int
		setup    func(r *rig)
		want     string
		next     int64
		degraded string
	}{
		{name: "the tail has expired", lacks: expired, ttl: day, below: 11, limit: 9, want: "f10 f9 f8 f7 f6", next: -1},
		{name: "the page ends at the last item", lacks: expired, ttl: day, below: 11, limit: 5, want: "f10 f9 f8 f7 f6", next: 6},
		{name: "all below has expired", lacks: expired, ttl: day, below: 6, limit: 5, want: "", next: -1},
		{name: "all far below has expired", lacks: expired, ttl: day, below: 3, limit: 5, want: "", next: -1},
		{name: "there is no TTL", lacks: expired, below: 11, limit: 9, want: "f10 f9 f8 f7 f6", next: 6, degraded: "stale"},
		{name: "a hole has something below it", lacks: []int64{8, 1, 2}, ttl: day, below: 11, limit: 9, want: "f10 f9", next: 9, degraded: "stale"},
		{name: "the store has no entry yet", lacks: all, ttl: day, below: 11, limit: 9, want: "", next: 11, degraded: "stale"},
		{name: "old but still stored", ttl: day, below: 7, limit: 9, want: "f6 f5 f4 f3 f2 f1", next: -1},
		{name: "store unavailable", lacks: expired, ttl: day, below: 6, limit: 9, setup: func(r *rig) { r.store.feed.err = errFake },
			want: "", next: 6, degraded: "store"},

		{name: "a visit to the end", lacks: expired, ttl: day, limit: 20, want: "*a *b *c f10 f9 f8 f7 f6", next: -1},
		{name: "the tail is young and missing", lacks: all, ttl: day, limit: 20,
			want: "*a *b *c f10 f9 f8 f7", next: 7, degraded: "stale"},
		{name: "the tail is young and missing under the newest", lacks: all, ttl: day, limit: 20, setup: func(r *rig) { r.store.materialize(r.served(10)) },
			want: "*a *b *c f10 f9 f8 f7", next: 7, degraded: "stale"},
		{name: "visit after all has expired", lacks: all, ttl: time.Minute, limit: 20, want: "*a *b *c", next: -1},
		{name: "visit after all has expired, store unavailable", lacks: all, ttl: time.Minute, limit: 20, setup: func(r *rig) { r.store.feed.err = errFake },
			want: "*a *b *c f10 f9 f8 f7", next: 7, degraded: "store"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := aged(t, c.lacks...)
				r.deps.TTL = c.ttl
				if c.setup != nil {
					c.setup(r)
				}
				page, err := Page{}, error(nil)
				if c.below > 0 {
					page = r.older(t, c.below, c.limit)
				} else if page, err = r.Visit(t.Context(), viewer, "home", c.limit); err != nil {
					t.Fatal(err)
				}
				same(t, "items", names(page.Items), c.want)
				same(t, "next", r.below(t, page.Next), c.next)
				same(t, "degraded", strings.Join(page.Degraded, " "), c.degraded)
			})
		})
	}
}

// A client that requests pages until next is null reaches the end.
func TestOlder_PagingEndsAtExpiredEntries(t *testing.T) {
	for limit := 1; limit <= 6; limit++ {
		synctest.Test(t, func(t *testing.T) {
			r, began := aged(t, 1, 2, 3, 4, 5), time.Now()
			page := must.Get(r.Visit(t.Context(), viewer, "home", limit))(t)
			got := names(page.Items)
			for n := 0; page.Next != nil; n++ {
				if page = r.older(t, r.below(t, page.Next), limit); n > 20 || len(page.Degraded) > 0 {
					t.Fatalf("%d pages of %d, degraded %v", n, limit, page.Degraded)
				}
				got += " " + names(page.Items)
			}
			same(t, "materialized items", strings.TrimSpace(got[strings.Index(got, "f10"):]), "f10 f9 f8 f7 f6")
			expect.Equal(t, time.Since(began), 0, "time that the answers waited for expired entries")
		})
	}
}
