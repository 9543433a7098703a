package generator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// The generator reads the best Head candidates of a pool first. It must continue while the user has seen those.
func TestChunk_FindsUnseenBehindSeenCandidates(t *testing.T) {
	for name, test := range map[string]struct {
		pins, seen int
		deferred   []schemas.Deferred
	}{
		"fewer seen than Head":    {pins: 40, seen: 37},
		"more seen than Head":     {pins: 300, seen: 250},
		"a deferred pin was seen": {pins: 300, seen: 250, deferred: []schemas.Deferred{{Pin: "pin:3", Since: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakePools(test.pins)
			for n := range test.seen {
				d.markSeen(poolstest.PinID(n))
			}
			poolstest.SetState(d.rows, layout.State{Head: int64(test.seen), Memory: schemas.Memory{Deferred: test.deferred}})
			c := visit(t, generatorOf(t, d), "v1")
			expectPins(t, c.Served.Items, poolstest.PinID(test.seen), poolstest.PinID(test.seen+1))
			expect.Equal(t, len(c.Served.Deferred), 0, "deferred %v: the deferred pin was seen", c.Served.Deferred)
		})
	}
}

// fakePoolsWith returns a fakePools whose user has a memory.
func fakePoolsWith(pins int, m schemas.Memory) *fakePools {
	d := newFakePools(pins)
	poolstest.SetState(d.rows, layout.State{Memory: m})
	return d
}

// The memory is read from the rows and written to the Served, for feeds with and without rules.
func TestChunk_ServedContainsMemory(t *testing.T) {
	before := schemas.Memory{
		Mix: map[string]float64{"editors": 3}, Draws: 5, Began: 1, Visited: 2, Weak: 3,
		Best: map[string]schemas.RankScore{"following": 7}, Deferred: []schemas.Deferred{{Pin: "pin:9", Since: 1}},
	}
	g := generatorOf(t, fakePoolsWith(5, before))
	plain := visit(t, g, "v1")
	g.Settle(poolstest.Owner, "v1", schemas.Failed)
	want := before
	want.Mix = map[string]float64{"editors": plain.Served.Mix["editors"]}
	if diff := cmp.Diff(want, plain.Served.Memory); diff != "" || plain.Served.Mix["editors"] <= 3 {
		t.Errorf("plain (-want +got):\n%s", diff)
	}
	r := request("v2")
	r.Feed, r.Time = rules.Home, 10
	home := must.Get(g.Chunk(t.Context(), r))(t)
	if m := home.Served.Memory; m.Visited != 10 || m.Began != 1 || m.Weak != 3 || len(m.Deferred) != 1 {
		t.Errorf("memory of home: %+v", m)
	}
}

func TestChunk_ServedContainsExpired(t *testing.T) {
	d := fakePoolsWith(5, schemas.Memory{Began: 1, Visited: 2, Best: map[string]schemas.RankScore{}, Deferred: []schemas.Deferred{{Pin: "pin:0", Since: 1}}})
	r := request("v1")
	r.Feed, r.Time = rules.Home, 1e13
	c := must.Get(generatorOf(t, d).Chunk(t.Context(), r))(t)
	expect.NoDiff(t, c.Served.Expired, []schemas.PinID{"pin:0"}, "expired")
	expectPins(t, c.Served.Items, "pin:1", "pin:2")
}

// registry assigns the id 1 to every schema.
type registry struct{}

func (registry) Register(context.Context, string, string) (int, error) { return 1, nil }

func (registry) SchemaByID(context.Context, int) (string, error) {
	return "", errors.New("the registry is unavailable")
}

// Signals that the feed home uses and that are unavailable are reported as degraded. The feed plain uses none.
func TestChunk_ReportsDegradedSignals(t *testing.T) {
	unknown := make(chan struct{})
	for name, c := range map[string]struct {
		hot    *Hot
		pulled *Pulled
		feed   string
		torn   bool
		want   []string
	}{
		"no counts":              {nil, nil, rules.Home, false, []string{degradedItems}},
		"counts not loaded":      {NewHot(unknown), nil, rules.Home, false, []string{degradedItems}},
		"counts":                 {NewHot(nil), nil, rules.Home, false, nil},
		"plain":                  {nil, nil, "plain", true, nil},
		"affinities unreadable":  {NewHot(nil), nil, rules.Home, true, []string{degradedAffinities}},
		"pulled pins not loaded": {nil, NewPulled(unknown), "plain", false, []string{degradedPulled}},
		"pulled pins loaded":     {nil, NewPulled(nil), "plain", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakePools(3)
			if c.torn {
				d.rows[string(layout.KindAffinities)] = []byte{1, 2, 3}
			}
			r := request("v1")
			r.Feed = c.feed
			g := generatorWith(t, DefaultConfig(), Deps{Rows: d, Hot: c.hot, Pulled: c.pulled})
			g.deps.Streams = must.Get(topics.Open(t.Context(), registry{}))(t)
			got := must.Get(g.Chunk(t.Context(), r))(t)
			expect.NoDiff(t, got.Degraded, c.want, "degraded")
			expect.Equal(t, len(got.Served.Items), 2, "items")
		})
	}
}

// While the pulled pins are not loaded, reads of pools return an error instead of an incomplete answer.
func TestPool_FailsUntilPulledPinsAreLoaded(t *testing.T) {
	ready := make(chan struct{})
	d := newFakePools(3)
	g := generatorWith(t, DefaultConfig(), Deps{Rows: d, Pulled: NewPulled(ready)})
	calls := map[string]func() error{
		"pool":    func() error { _, err := g.Pool(t.Context(), poolstest.Owner, "editors", 1); return err },
		"waiting": func() error { _, err := g.Waiting(t.Context(), poolstest.Owner); return err },
	}
	for name, call := range calls {
		expect.Is(t, call(), errPulledNotLoaded, "%s", name)
	}
	close(ready)
	for name, call := range calls {
		expect.Error(t, call(), "", "%s", name)
	}
}

func TestChunk_ReportsArm(t *testing.T) {
	cfg := DefaultConfig()
	changeHome(cfg.Feeds, func(home *rules.Feed) {
		home.ExperimentArms = []rules.Arm{{Feed: "plain", Share: 1}}
	})
	d := newFakePools(3)
	c := homeVisit(t, generatorWith(t, cfg, Deps{Rows: d}), "v1", 2)
	if c.Served.Feed != rules.Home || c.Served.Arm != "plain" || c.Degraded != nil {
		t.Errorf("feed %q, arm %q, degraded %v, want home with the rules of plain", c.Served.Feed, c.Served.Arm, c.Degraded)
	}
}

// Waiting returns the pins that a visit of the feed home without a limit would show, without deferred pins.
func TestWaiting_OmitsDeferred(t *testing.T) {
	cfg := DefaultConfig()
	changeHome(cfg.Feeds, func(home *rules.Feed) {
		home.Defer.Margin, home.Defer.Budget = 10, 5
	})
	d := newFakePoolsOf(schemas.Related, 30) // 11 within the margin
	g := generatorWith(t, cfg, Deps{Rows: d})
	expect := func(when string, want int) {
		t.Helper()
		expect.Equal(t, must.Get(g.Waiting(t.Context(), poolstest.Owner))(t), want, "%s: waiting", when)
	}
	expect("at first", 16)
	r := request("v1")
	r.Feed, r.Limit, r.Time = rules.Home, 100, schemas.MicrosOf(g.deps.Now())
	c, err := g.Chunk(t.Context(), r)
	if err != nil || len(c.Served.Items) != 16 {
		t.Fatalf("%d items, %v, want 16", len(c.Served.Items), err)
	}
	d.apply(t, &c.Served)
	expect("the budget of the session is spent", 0)
	delete(cfg.Feeds, rules.Home)
	g = generatorWith(t, cfg, Deps{Rows: d})
	expect("without feed home", 14)
}

// A pin that was shown long ago and is in a pool again does not count, and other pins are not compared with it. The
// same holds for a pin that Extensions.Admit rejects.
func TestWaiting_OmitsRejectedByAdmit(t *testing.T) {
	d := newFakePoolsOf(schemas.Related, 20)
	cfg := DefaultConfig()
	changeHome(cfg.Feeds, func(home *rules.Feed) {
		home.Defer.Margin, home.Defer.Budget = 10, 0
	})
	g := generatorWith(t, cfg, Deps{Rows: d, Extensions: Extensions{
		Admit: func(_ schemas.UserID, feed string, c rules.Candidate) bool {
			return feed != rules.Home || c.PoolScore < -4 && c.PoolScore != -7
		},
	}})
	expect.Equal(t, must.Get(g.Waiting(t.Context(), poolstest.Owner))(t), 10, "waiting pins")
	expect.Equal(t, len(must.Get(g.FeedState(t.Context(), poolstest.Owner, rules.Home))(t).Deferred), 4, "deferred pins")
}

func TestWaiting_OmitsSeenLongAgo(t *testing.T) {
	cfg := DefaultConfig()
	changeHome(cfg.Feeds, func(home *rules.Feed) {
		home.Defer.Margin, home.Defer.Budget = 10, 5
	})
	tests := map[string]struct {
		seen []int
		want int
	}{
		"none":              {nil, 16}, // 11 within the margin, and the budget
		"a pin that counts": {[]int{5}, 15},
		"the best":          {[]int{0}, 16}, // the threshold is lower without it
		"all":               {[]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := newFakePoolsOf(schemas.Related, 20)
			poolstest.SetState(d.rows, layout.State{Head: 9})
			for _, n := range test.seen { // older than the newest entries
				d.markSeen(poolstest.PinID(n))
			}
			n := must.Get(generatorWith(t, cfg, Deps{Rows: d}).Waiting(t.Context(), poolstest.Owner))(t)
			expect.Equal(t, n, test.want, "waiting")
		})
	}
}

func TestHot_SumsAuthors(t *testing.T) {
	known := make(chan struct{})
	h := NewHot(known)
	expect.False(t, h.Ready(), "Ready before the table was loaded")
	close(known)
	a := &schemas.HotPin{Pin: "pin:a", Author: "user:x", Impressions: 10, Saves: 1}
	b := &schemas.HotPin{Pin: "pin:b", Author: "user:x", Impressions: 5, Saves: 2}
	other := &schemas.HotPin{Pin: "pin:b", Author: "user:y", Impressions: 6, Saves: 2}
	withoutAuthor := &schemas.HotPin{Pin: "pin:c", Impressions: 1}
	check := func(when string, x, y rules.Count, authors int) {
		t.Helper()
		if gotX, gotY := h.Author("user:x"), h.Author("user:y"); gotX != x || gotY != y || len(h.authors) != authors {
			t.Errorf("%s: got %+v and %+v of %d, want %+v and %+v of %d", when, gotX, gotY, len(h.authors), x, y, authors)
		}
	}
	h.Change("", nil, a)
	h.Change("", nil, b)
	h.Change("", nil, withoutAuthor)
	check("two pins", rules.Count{Impressions: 15, Saves: 3}, rules.Count{}, 1)
	h.Change("", b, other)
	check("a pin moved to another author", rules.Count{Impressions: 10, Saves: 1}, rules.Count{Impressions: 6, Saves: 2}, 2)
	if got := h.Pin("pin:b"); got != (rules.Count{Impressions: 6, Saves: 2}) || !h.Ready() {
		t.Errorf("pin:b: %+v", got)
	}
	h.Change("", a, nil)
	check("a pin removed", rules.Count{}, rules.Count{Impressions: 6, Saves: 2}, 1)
	expect.Equal(t, h.Pin("pin:a"), (rules.Count{}), "pin:a")
}

func TestMetrics_CountChunks(t *testing.T) {
	cfg := withoutExploration()
	changeHome(cfg.Feeds, func(home *rules.Feed) {
		home.Caps = rules.Caps{Window: 10, Author: 1}
	})
	reg := prometheus.NewRegistry()
	externalChunk(t, newFakePools(50), cfg, reg)
	for name, want := range map[string]map[string]float64{
		"items_total":          {" home others": 50},
		"relaxed_chunks_total": {"home all": 1},
	} {
		expect.NoDiff(t, metricstest.Values(t, reg, "smartfeed_generator_"+name), want, "%s", name)
	}
}

// A random history has deliveries, blocks, visits of any feed, failures and restarts. No pin is shown twice or while it is
// hidden, and a chunk of the feed home is as large as the waiting candidates allow.
func TestChunk_RandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := DefaultConfig()
		home := cfg.Feeds[rules.Home]
		home.Defer = rules.Defer{Margin: 5, Budget: 2, SessionTimeout: time.Minute, Expiry: time.Hour}
		cfg.Feeds = rules.Feeds{rules.Home: home, "plain": cfg.Feeds["plain"]}
		w := newWhyFixture(t, func(_ *layout.Config, c *Config) { c.Feeds = cfg.Feeds })
		w.g.deps.Hot = NewHot(nil)
		shown := map[schemas.PinID]bool{}
		blocked := schemas.UserID("")
		pins := 0
		for step := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0, 1:
				for range rapid.IntRange(1, 20).Draw(rt, "pins") {
					f := schemas.Facets{Author: schemas.UserID(fmt.Sprintf("user:%d", rapid.IntRange(0, 3).Draw(rt, "author")))}
					w.deliver(schemas.Related, poolstest.PinID(pins), day*schemas.Micros(rapid.IntRange(0, 20).Draw(rt, "days")), f)
					pins++
				}
			case 2:
				delete(w.rows, string(layout.GraphRow(layout.RegisterBlock, schemas.ID(blocked))))
				blocked = schemas.UserID(fmt.Sprintf("user:%d", rapid.IntRange(0, 3).Draw(rt, "blocked")))
				w.graph(layout.RegisterBlock, schemas.ID(blocked))
			case 3:
				w.now += schemas.Micros(rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Minute, 2 * time.Hour}).Draw(rt, "pause") / time.Microsecond)
				w.change(func() { w.session++ })
			default:
				waiting := must.Get(w.g.Waiting(t.Context(), poolstest.Owner))(rt)
				r := schemas.ChunkRequest{Served: fmt.Sprintf("v%d", step), User: poolstest.Owner, Time: w.now,
					Feed: rapid.SampledFrom([]string{rules.Home, "plain"}).Draw(rt, "feed"), Limit: rapid.IntRange(1, 30).Draw(rt, "limit")}
				c := must.Get(w.g.Chunk(t.Context(), r))(rt)
				if want := min(r.Limit, waiting); r.Feed == rules.Home && len(c.Served.Items) != want {
					rt.Fatalf("%d items, want %d of %d waiting", len(c.Served.Items), want, waiting)
				}
				for _, it := range c.Served.Items {
					if shown[it.Pin] || it.Author == blocked {
						rt.Fatalf("%s by %s: repeated or blocked", it.Pin, it.Author)
					}
				}
				if len(c.Served.Items) == 0 {
					continue // nothing to publish
				}
				if rapid.IntRange(0, 3).Draw(rt, "fails") == 0 {
					w.g.Settle(poolstest.Owner, r.Served, schemas.Failed)
					continue
				}
				for _, it := range c.Served.Items {
					shown[it.Pin] = true
				}
				w.g.Settle(poolstest.Owner, r.Served, schemas.Acknowledged)
				w.apply(t, &c.Served)
			}
		}
	})
}
