package generator

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

func popularPin(n int, engagement float64, change ...func(*schemas.PopularPin)) *schemas.PopularPin {
	p := &schemas.PopularPin{
		Pin: schemas.PinID(fmt.Sprintf("pin:top-%d", n)), Engagement: engagement,
		Facets: schemas.Facets{Author: schemas.UserID(fmt.Sprintf("user:author-%d", n))},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// popularOf returns popular pins, each in its own slot.
func popularOf(pins ...*schemas.PopularPin) *Popular {
	p := NewPopular(time.Hour, nil)
	for i, pin := range pins {
		p.Change(fmt.Sprint(i), nil, pin)
	}
	return p
}

func homeVisit(t *testing.T, g *Generator, served string, limit int) *schemas.Chunk {
	t.Helper()
	return must.Get(g.Chunk(t.Context(), schemas.ChunkRequest{Served: served, User: poolstest.Owner, Feed: rules.Home, Limit: limit}))(t)
}

// After any changes, the candidates are the pins of the current slots, ordered by their engagement at any one time.
func TestPopular_SortsSlotsByDecayedEngagement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, slots := NewPopular(time.Hour, nil), map[string]*schemas.PopularPin{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			key := rapid.SampledFrom([]string{"0 1", "0 2", "1 1", "2 1"}).Draw(t, "slot")
			// Below twice the least one: engagements of different hours are then never equal, up to rounding.
			engagement := float64(rapid.IntRange(1000, 1999).Draw(t, "engagement"))
			after := popularPin(rapid.IntRange(0, 1000).Draw(t, "pin"), engagement, func(p *schemas.PopularPin) {
				p.Pin += schemas.PinID(key) // a pin is in one partition
				p.Time = schemas.Micros(rapid.IntRange(0, 10).Draw(t, "hour")) * schemas.Micros(time.Hour.Microseconds())
			})
			if rapid.IntRange(0, 3).Draw(t, "free") == 0 {
				after = nil
			}
			p.Change(key, slots[key], after)
			if slots[key] = after; after == nil {
				delete(slots, key)
			}
		}
		left := func(s *schemas.PopularPin) float64 { // ten hours after 1970
			return s.Engagement * math.Exp2(float64(s.Time)/float64(time.Hour.Microseconds())-10)
		}
		all := slices.SortedFunc(maps.Values(slots), func(a, b *schemas.PopularPin) int {
			return cmp.Or(cmp.Compare(left(b), left(a)), cmp.Compare(a.Pin, b.Pin))
		})
		want := convert.All(all, func(s *schemas.PopularPin) schemas.PinID { return s.Pin })
		got := convert.All(p.candidates(), func(c layout.Candidate) schemas.PinID { return c.Pin })
		expect.NoDiff(t, got, want, "popular pins")
	})
}

// A user without candidates gets the most popular pins that may be shown, once.
func TestChunk_FillsFeedOfNewUserWithPopularPins(t *testing.T) {
	d := newFakePools(0)
	d.rows[string(layout.GraphRow(layout.RegisterBlock, "user:author-2"))] = layout.AppendFollow(nil, 0, 1)
	reg := prometheus.NewRegistry()
	g := generatorWith(t, DefaultConfig(), Deps{Rows: d, Metrics: reg, Hot: NewHot(nil), Popular: popularOf(
		popularPin(1, 5), popularPin(2, 9), popularPin(3, 7), popularPin(4, 8, func(p *schemas.PopularPin) { p.Author = poolstest.Owner }), popularPin(5, 6),
	)})
	changed := homeVisit(t, g, "v1", 2)
	for i := range changed.Served.Items { // draws of exploration
		changed.Served.Items[i].Source = schemas.FromPopular
	}
	expectPins(t, changed.Served.Items, "pin:top-3", "pin:top-5")
	d.apply(t, &changed.Served)
	expectPins(t, homeVisit(t, g, "v2", 3).Served.Items, "pin:top-1")
	got := metricstest.Values(t, reg, "smartfeed_generator_items_total")
	expect.Equal(t, got[" home explore"]+got[" home popular"], 3, "popular pins counted")
}

// The pools of a user come first. A chunk that they fill has no popular pin, and neither has the feed plain.
func TestChunk_PopularPinsFillOnlyPlacesLeftOver(t *testing.T) {
	g := generatorWith(t, DefaultConfig(), Deps{Rows: newFakePools(3), Popular: popularOf(popularPin(1, 5), popularPin(2, 9))})
	for limit, want := range map[int][]schemas.PinID{
		2: {"pin:0", "pin:1"}, 3: {"pin:0", "pin:1", "pin:2"}, 4: {"pin:0", "pin:1", "pin:2", "pin:top-2"}, 9: {"pin:0", "pin:1", "pin:2", "pin:top-2", "pin:top-1"},
	} {
		served := fmt.Sprint("v", limit)
		expectPins(t, homeVisit(t, g, served, limit).Served.Items, want...)
		g.Settle(poolstest.Owner, served, schemas.Failed)
	}
	expectPins(t, visit(t, g, "plain").Served.Items, "pin:0", "pin:1")
}

// A popular pin that is in a pool, too, is shown once.
func TestChunk_PopularPinOfPoolIsShownOnce(t *testing.T) {
	same := popularPin(1, 9, func(p *schemas.PopularPin) { p.Pin, p.Author = "pin:0", "user:a" })
	g := generatorWith(t, DefaultConfig(), Deps{Rows: newFakePools(1), Popular: popularOf(same, popularPin(2, 5))})
	expectPins(t, homeVisit(t, g, "v1", 5).Served.Items, "pin:0", "pin:top-2")
}

func TestChunk_DegradedWithoutPopularPins(t *testing.T) {
	loading := make(chan struct{})
	g := generatorWith(t, DefaultConfig(), Deps{Rows: newFakePools(1), Hot: NewHot(nil), Popular: NewPopular(time.Hour, loading)})
	for limit, want := range map[int][]string{1: nil, 2: {degradedPopular}} {
		served := fmt.Sprint("v", limit)
		expect.NoDiff(t, homeVisit(t, g, served, limit).Degraded, want, "limit %d: degraded", limit)
		g.Settle(poolstest.Owner, served, schemas.Failed)
	}
}

// The queries report popular pins as candidates of every user. The number of new items does not count them.
func TestQueries_ReportPopularPins(t *testing.T) {
	d := newFakePools(1)
	d.markSeen("pin:top-2")
	poolstest.SetState(d.rows, layout.State{Head: 1})
	g := generatorWith(t, DefaultConfig(), Deps{Rows: d, Hot: NewHot(nil), Popular: popularOf(popularPin(1, 5), popularPin(2, 9))})
	pool := must.Get(g.Pool(t.Context(), poolstest.Owner, schemas.FromPopular, 10))(t)
	if pool.Total != 1 || pool.Items[0].Pin != "pin:top-1" {
		t.Errorf("got the pool %+v, want pin:top-1", pool)
	}
	expect.Equal(t, must.Get(g.Waiting(t.Context(), poolstest.Owner))(t), 1, "new items")
	for limit, want := range map[int]schemas.Fate{1: schemas.FateWaiting, 2: schemas.FateNext} {
		w := must.Get(g.Why(t.Context(), schemas.WhyRequest{User: poolstest.Owner, Pin: "pin:top-1", Feed: rules.Home, Limit: limit}))(t)
		if w.Fate != want || len(w.Candidates) != 1 || w.Candidates[0].Source != schemas.FromPopular || w.Candidates[0].Rank != 1 {
			t.Errorf("limit %d: got %+v, want %s as the best popular pin", limit, w, want)
		}
	}
	s := must.Get(g.FeedState(t.Context(), poolstest.Owner, rules.Home))(t)
	if i := slices.IndexFunc(s.Sources, func(s schemas.SourceState) bool { return s.Source == schemas.FromPopular }); i < 0 || s.Sources[i].Waiting != 1 || s.Sources[i].Target != 0 {
		t.Errorf("got the sources %+v, want one popular pin without a target", s.Sources)
	}
}
