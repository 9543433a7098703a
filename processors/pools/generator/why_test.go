package generator

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/memrows"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// whyFixture is a fakePools whose user follows some ids, with a generator of the feed home without exploration.
type whyFixture struct {
	*fakePools
	t   *testing.T
	g   *Generator
	now schemas.Micros
}

const day = schemas.Micros(24 * 3600 * 1e6)

func newWhyFixture(t *testing.T, change func(pools *layout.Config, cfg *Config)) *whyFixture {
	pools, cfg := layout.DefaultConfig(), withoutExploration()
	cfg.HalfLife = 24 * time.Hour
	if change != nil {
		change(&pools, &cfg)
	}
	w := &whyFixture{fakePools: newFakePools(0), t: t, now: 1e15}
	streams := must.Get(topics.Open(t.Context(), registry{}))(t)
	w.g = must.Get(New(pools, cfg, Deps{
		Rows: w.fakePools, End: w.fakePools, Streams: streams, Deleted: deletedtest.Of("user:deleted"),
		Now: func() time.Time { return w.now.Time() },
	}))(t)
	t.Cleanup(w.g.Close)
	w.graph(layout.RegisterFollow, "user:a")
	return w
}

func (w *whyFixture) graph(register byte, other schemas.ID) {
	w.rows[string(layout.GraphRow(register, other))] = layout.AppendFollow(nil, 0, 1)
}

// deliver puts a pin of an age into a pool, over an edge with weight 1.
func (w *whyFixture) deliver(source schemas.Source, pin schemas.PinID, age schemas.Micros, f schemas.Facets) *schemas.Card {
	c := &schemas.Card{PinVersion: schemas.PinVersion{Pin: pin, Version: 1, PinContent: schemas.PinContent{Facets: f, Created: w.now - age}, Quality: 1}}
	poolstest.Deliver(w.rows, source, poolstest.Delivered{Pin: pin, Version: 1, PinContent: schemas.PinContent{Created: c.Created, Facets: f}, PoolScore: score.Weighted(score.Base(1, c.Created, 24*time.Hour), 1)})
	return c
}

// shown adds a pin to the materialized feed.
func (w *whyFixture) shown(position int64, pin schemas.PinID) schemas.ServedItem {
	w.t.Helper()
	item := schemas.ServedItem{Pin: pin, Source: schemas.Following, Facets: byA, RankScore: 5, Created: 7}
	entries := schemas.FeedEntries{User: poolstest.Owner, Time: 11, First: position, Items: []schemas.ServedItem{item}}
	w.rows[string(rows.Name(layout.KindSeen, pin))] = layout.AppendSeen(nil, layout.Seen{Position: position, Time: 11})
	w.rows[string(layout.PositionRow(layout.KindMaterialized, position))] = must.Get(w.g.deps.Streams.FeedEntries.Encode(&entries))(w.t)
	return item
}

// visit requests a chunk of the feed home.
func (w *whyFixture) visit(limit int) *schemas.Chunk {
	w.t.Helper()
	r := schemas.ChunkRequest{Served: "v1", User: poolstest.Owner, Feed: rules.Home, Limit: limit, Time: w.now}
	return must.Get(w.g.Chunk(w.t.Context(), r))(w.t)
}

func (w *whyFixture) why(pin schemas.PinID, card *schemas.Card) *schemas.Why {
	w.t.Helper()
	return w.answer(pin, card, false)
}

func (w *whyFixture) masked(pin schemas.PinID, card *schemas.Card) *schemas.Why {
	w.t.Helper()
	return w.answer(pin, card, true)
}

func (w *whyFixture) answer(pin schemas.PinID, card *schemas.Card, masked bool) *schemas.Why {
	w.t.Helper()
	r := schemas.WhyRequest{User: poolstest.Owner, Pin: pin, Feed: rules.Home, Limit: 3, Time: w.now, Card: card, Masked: masked}
	return must.Get(w.g.Why(w.t.Context(), r))(w.t)
}

// expect compares the fate, the reason, and the ids that cause it.
func (w *whyFixture) expect(got *schemas.Why, fate schemas.Fate, reason schemas.Reason, by ...schemas.ID) {
	w.t.Helper()
	type fields struct {
		Fate   schemas.Fate
		Reason schemas.Reason
		By     []schemas.ID
	}
	expect.NoDiffBut(w.t, cmpopts.EquateEmpty(), fields{got.Fate, got.Reason, got.By}, fields{fate, reason, by}, "fate, reason, ids")
}

var byA = schemas.Facets{Author: "user:a", Board: "board:b", Interests: []schemas.InterestID{"interest:x"}}

// approximately compares scores and their parts. A part that is 0 equals a missing one.
var approximately = cmp.Options{
	cmpopts.EquateApprox(0, 1e-6), cmpopts.IgnoreMapEntries(func(_ string, part float64) bool { return math.Abs(part) < 1e-9 }),
}

func TestWhy_Waiting(t *testing.T) {
	w := newWhyFixture(t, func(_ *layout.Config, cfg *Config) {
		changeHome(cfg.Feeds, func(home *rules.Feed) { home.Caps = rules.Caps{Window: 2, Author: 1} })
		cfg.CandidatesPerSource = 100
	})
	w.graph(layout.RegisterFollow, "user:b")
	card := w.deliver(schemas.Following, "pin:first", 0, byA)
	w.deliver(schemas.Following, "pin:capped", 1, byA)
	w.deliver(schemas.Following, "pin:second", 2, schemas.Facets{Author: "user:b"})
	w.deliver(schemas.Following, "pin:third", 3, byA)
	w.deliver(schemas.Following, "pin:later", 4, schemas.Facets{Author: "user:b"})
	for n := range 100 {
		w.deliver(schemas.Following, poolstest.PinID(n), 5, byA)
	}
	got := w.why("pin:first", card)
	w.expect(got, schemas.FateNext, "")
	want := schemas.List[schemas.WhyCandidate]{{
		Source: schemas.Following, Rank: 1, Edges: []schemas.ID{"user:a"}, RankScore: schemas.RankScore(score.Weighted(score.Base(1, w.now, 24*time.Hour), 1)),
		Parts: map[string]float64{"created": math.Ln2 * float64(w.now) / float64(day), "quality": 0, "edge": 0},
	}}
	expect.NoDiffBut(t, approximately, got.Candidates, want, "candidates")
	expect.Equal(t, got.Place, 1, "place")
	w.expect(w.why("pin:capped", nil), schemas.FateWaiting, schemas.ReasonCapAuthor)
	w.expect(w.why("pin:later", nil), schemas.FateWaiting, schemas.ReasonOutranked)
	w.expect(w.why("pin:99", nil), schemas.FateWaiting, schemas.ReasonBeyondHead)
	if got := w.why("pin:third", nil); got.Place != 3 || got.Candidates[0].Rank != 4 {
		t.Errorf("pin:third: place %d, rank %d, want 3 and 4", got.Place, got.Candidates[0].Rank)
	}
	visit(t, w.g, "v1")
	w.expect(w.why("pin:first", nil), schemas.FatePending, "")
}

// The parts of a score add up to it.
func TestWhy_ScoreParts(t *testing.T) {
	w := newWhyFixture(t, nil)
	card := w.deliver(schemas.Following, "pin:1", 5*day, byA)
	card.Quality = 2
	created := math.Ln2 * float64(card.Created) / float64(day)
	w.rows = memrows.Table{}
	w.graph(layout.RegisterFollow, "user:a")
	poolstest.Deliver(w.rows, schemas.Following, poolstest.Delivered{Pin: "pin:1", Version: 1, PinContent: schemas.PinContent{Created: card.Created, Facets: byA}, PoolScore: schemas.PoolScore(created + math.Log(2) + math.Log(3))})
	poolstest.Deliver(w.rows, schemas.Related, poolstest.Delivered{Pin: "pin:1", Version: 1, PinContent: schemas.PinContent{Created: card.Created, Facets: byA}, PoolScore: schemas.PoolScore(created + 0.5)})
	poolstest.Deliver(w.rows, "editors", poolstest.Delivered{Pin: "pin:1", Version: 1, PinContent: schemas.PinContent{Created: card.Created, Facets: byA}, PoolScore: 77})
	got := w.why("pin:1", card)
	want := []map[string]float64{
		{"offered": 77}, {"created": created, "quality": math.Log(2), "edge": math.Log(3)}, {"created": created, "quality": math.Log(2), "edge": 0.5 - math.Log(2)},
	}
	for i, parts := range want {
		expect.NoDiffBut(t, approximately, got.Candidates[i].Parts, parts, "%s", string(got.Candidates[i].Source))
	}
	delete(want[1], "quality")
	delete(want[1], "edge")
	want[1]["quality_and_edge"] = math.Log(6)
	expect.NoDiffBut(t, approximately, w.why("pin:1", nil).Candidates[1].Parts, want[1], "without a card")
}

func TestWhy_Hidden(t *testing.T) {
	with := func(change func(*schemas.Facets)) schemas.Facets {
		f := byA
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		facets  schemas.Facets
		prepare func(w *whyFixture)
		deleted bool
		reason  schemas.Reason
		by      []schemas.ID
	}{
		"deleted":           {facets: byA, deleted: true, reason: schemas.ReasonDeleted},
		"by a deleted user": {facets: with(func(f *schemas.Facets) { f.Author = "user:deleted" }), reason: schemas.ReasonAuthorDeleted, by: []schemas.ID{"user:deleted"}},
		"the user's own":    {facets: with(func(f *schemas.Facets) { f.Author = poolstest.Owner }), reason: schemas.ReasonOwn},
		"blocked author":    {facets: byA, prepare: func(w *whyFixture) { w.graph(layout.RegisterBlock, "user:a") }, reason: schemas.ReasonBlock, by: []schemas.ID{"user:a"}},
		"blocked by author": {facets: byA, prepare: func(w *whyFixture) { w.graph(layout.RegisterBlockedBy, "user:a") }, reason: schemas.ReasonBlock, by: []schemas.ID{"user:a"}},
		"blocked board and interest": {facets: byA, prepare: func(w *whyFixture) {
			w.graph(layout.RegisterBlock, "interest:x")
			w.graph(layout.RegisterBlock, "board:b")
		}, reason: schemas.ReasonBlock, by: []schemas.ID{"board:b", "interest:x"}},
		"unfollowed": {facets: with(func(f *schemas.Facets) { f.Author = "user:z" }), reason: schemas.ReasonNoEdge},
		"over the cap of followees": {facets: with(func(f *schemas.Facets) { f.Author = "user:z" }), prepare: func(w *whyFixture) {
			for _, other := range []schemas.ID{"user:z", "interest:x", "user:other"} {
				w.rows[string(rows.Name(layout.KindRefused, other))] = []byte{}
			}
		}, reason: schemas.ReasonFolloweeCap, by: []schemas.ID{"interest:x", "user:z"}},
	} {
		for _, delivered := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, delivered %v", name, delivered), func(t *testing.T) {
				w := newWhyFixture(t, nil)
				if c.prepare != nil {
					c.prepare(w)
				}
				card := w.deliver(schemas.Following, "pin:1", 0, c.facets)
				card.Deleted = c.deleted
				if c.deleted {
					w.rows = memrows.Table{}
				}
				if !delivered {
					delete(w.rows, string(layout.AppendCandidate(nil, layout.KindFirstVersion, schemas.Following, score.Weighted(score.Base(1, card.Created, 24*time.Hour), 1), "pin:1", 1)))
				}
				w.expect(w.why("pin:1", card), schemas.FateHidden, c.reason, c.by...)
			})
		}
	}
}

// A deletion is delivered over edges. For a candidate without an edge, only the card reports it.
func TestWhy_DeletedRelatedPin(t *testing.T) {
	w := newWhyFixture(t, nil)
	card := w.deliver(schemas.Related, "pin:1", 0, byA)
	w.expect(w.why("pin:1", card), schemas.FateNext, "")
	card.Deleted = true
	got := w.why("pin:1", card)
	w.expect(got, schemas.FateHidden, schemas.ReasonDeleted)
	if len(got.Candidates) != 1 || got.Candidates[0].Rank != 0 || got.Candidates[0].Reason != schemas.ReasonDeleted {
		t.Errorf("candidates %+v, want a deleted one without a rank", got.Candidates)
	}
}

func TestWhy_Out(t *testing.T) {
	t.Run("unknown", func(t *testing.T) {
		w := newWhyFixture(t, nil)
		w.expect(w.why("pin:1", nil), schemas.FateOut, schemas.ReasonUnknown)
	})
	t.Run("never delivered", func(t *testing.T) {
		w := newWhyFixture(t, nil)
		w.graph(layout.RegisterFollow, "interest:x")
		card := &schemas.Card{PinVersion: schemas.PinVersion{Pin: "pin:1", PinContent: schemas.PinContent{Facets: byA, Created: w.now}, Quality: 1}}
		w.expect(w.why("pin:1", card), schemas.FateOut, schemas.ReasonUndelivered, "interest:x", "user:a")
	})
	t.Run("trimmed, and beyond the cap", func(t *testing.T) {
		w := newWhyFixture(t, func(pools *layout.Config, _ *Config) { pools.MaxCandidates = 10 })
		for n := range 10 {
			w.deliver(schemas.Following, poolstest.PinID(n), schemas.Micros(n), byA)
		}
		card := &schemas.Card{PinVersion: schemas.PinVersion{Pin: "pin:old", PinContent: schemas.PinContent{Facets: byA, Created: w.now - day}, Quality: 1}}
		w.expect(w.why("pin:old", card), schemas.FateOut, schemas.ReasonCap, "user:a")
		card.Created = w.now + day
		w.expect(w.why("pin:old", card), schemas.FateOut, schemas.ReasonUndelivered, "user:a")
		w.deliver(schemas.Following, "pin:stands", 11, byA)
		w.expect(w.why("pin:stands", nil), schemas.FateOut, schemas.ReasonCap)
	})
	t.Run("expired", func(t *testing.T) {
		w := newWhyFixture(t, func(pools *layout.Config, _ *Config) { pools.MaxPinAge = time.Hour })
		card := w.deliver(schemas.Following, "pin:1", day, byA)
		w.expect(w.why("pin:1", card), schemas.FateOut, schemas.ReasonExpired)
		card.Pin = "pin:2"
		w.expect(w.why("pin:2", card), schemas.FateOut, schemas.ReasonExpired)
	})
	t.Run("older than the seen pins", func(t *testing.T) {
		w := newWhyFixture(t, nil)
		poolstest.SetState(w.rows, layout.State{Head: 9, SeenTrimmed: 3, Refused: w.now})
		card := w.deliver(schemas.Following, "pin:1", day, byA)
		w.expect(w.why("pin:1", card), schemas.FateOut, schemas.ReasonSeenTrimmed)
		w.expect(w.why("pin:2", card), schemas.FateOut, schemas.ReasonSeenTrimmed)
	})
	t.Run("a deleted user", func(t *testing.T) {
		w := newWhyFixture(t, nil)
		got := must.Get(w.g.Why(t.Context(), schemas.WhyRequest{User: "user:deleted", Pin: "pin:1", Feed: rules.Home, Limit: 3}))(t)
		w.expect(got, schemas.FateOut, schemas.ReasonUserDeleted)
	})
}

func TestWhy_Deferred(t *testing.T) {
	w := newWhyFixture(t, func(_ *layout.Config, cfg *Config) {
		changeHome(cfg.Feeds, func(home *rules.Feed) {
			home.Defer = rules.Defer{Margin: 2, SessionTimeout: time.Hour, Expiry: 2 * time.Hour}
			home.Shares[schemas.Related] = 0
		})
	})
	w.deliver(schemas.Following, "pin:strong", 0, byA)
	w.deliver(schemas.Following, "pin:weak", 3*day, byA)
	w.deliver(schemas.Related, "pin:unwanted", 0, byA)
	w.expect(w.why("pin:weak", nil), schemas.FateDeferred, schemas.ReasonWeak)
	w.expect(w.why("pin:unwanted", nil), schemas.FateWaiting, schemas.ReasonNoShare)
	c := w.visit(3)
	w.apply(t, &c.Served)
	since := w.now
	got := w.why("pin:weak", nil)
	w.expect(got, schemas.FateDeferred, schemas.ReasonDeferredEarlier)
	expect.Equal(t, schemas.Micros(got.Since), since, "time of deferral")
	w.now += schemas.Micros(61 * 60 * 1e6)
	w.expect(w.why("pin:weak", nil), schemas.FateNext, "")
	w.now += schemas.Micros(60 * 60 * 1e6)
	w.expect(w.why("pin:weak", nil), schemas.FateOut, schemas.ReasonDeferralExpired)
}

func TestWhy_Shown(t *testing.T) {
	w := newWhyFixture(t, nil)
	w.deliver(schemas.Following, "pin:1", 0, byA)
	poolstest.SetState(w.rows, layout.State{Head: 3})
	item := w.shown(3, "pin:1")
	w.rows[string(rows.Name(layout.KindSeen, schemas.PinID("pin:0")))] = layout.AppendSeen(nil, layout.Seen{Position: 1, Time: 9})
	got := w.why("pin:1", nil)
	w.expect(got, schemas.FateShown, "")
	if diff := cmp.Diff(&schemas.Shown{Position: 3, Time: 11, Source: item.Source, RankScore: &item.RankScore}, got.Shown, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	if c := got.Candidates; len(c) != 1 || c[0].Reason != schemas.ReasonSeen || c[0].Rank != 0 {
		t.Errorf("candidates %+v, want a seen one", c)
	}
	w.graph(layout.RegisterBlock, "user:a")
	w.expect(w.why("pin:1", nil), schemas.FateShown, schemas.ReasonBlock, "user:a")
	expect.NoDiff(t, w.why("pin:0", nil).Shown, &schemas.Shown{Position: 1, Time: 9}, "long ago")
}

func TestWhy_Errors(t *testing.T) {
	w := newWhyFixture(t, nil)
	why := func(feed string, limit int) error {
		_, err := w.g.Why(t.Context(), schemas.WhyRequest{User: poolstest.Owner, Pin: "pin:1", Feed: feed, Limit: limit})
		return err
	}
	expect.Is(t, why("work", 3), schemas.ErrUnknownFeed, "error")
	expect.Fails(t, why(rules.Home, 0), "limit of 0")
	w.session = 0
	expect.Is(t, why(rules.Home, 3), schemas.ErrNotOwner, "Why")
}

// Why also considers candidates of external sources.
func TestWhy_Offered(t *testing.T) {
	var service external.Config
	w := newWhyFixture(t, func(_ *layout.Config, cfg *Config) {
		service = respondingText(t, `{"candidates":[{"pin":"pin:1","author":"user:z","created":1,"score":1}]}`)
		cfg.ExternalSources = []ExternalSource{source("trends", service)}
	})
	got := w.why("pin:1", nil)
	w.expect(got, schemas.FateNext, "")
	if len(got.Candidates) != 1 || got.Candidates[0].Source != "trends" || got.Candidates[0].Parts["offered"] != 1 {
		t.Errorf("candidates %+v", got.Candidates)
	}
}

// A pin that was shown long ago and is still in a pool defers no other pin. This holds even for a weak pin that a cap
// skips.
func TestChunk_SeenPinsTakeNoBudget(t *testing.T) {
	w := newWhyFixture(t, func(_ *layout.Config, cfg *Config) {
		changeHome(cfg.Feeds, func(home *rules.Feed) {
			home.Caps = rules.Caps{Window: 4, Author: 1}
			home.Defer = rules.Defer{Margin: 3, Budget: 1, SessionTimeout: time.Hour, Expiry: 2 * time.Hour}
		})
	})
	w.graph(layout.RegisterFollow, "user:b")
	poolstest.SetState(w.rows, layout.State{Head: 1})
	w.deliver(schemas.Following, "pin:best", 0, byA)
	w.deliver(schemas.Following, "pin:next", day, byA)
	w.deliver(schemas.Following, "pin:weak-seen", 4*day, byA)
	w.deliver(schemas.Following, "pin:weak-of-b", 5*day, schemas.Facets{Author: "user:b", Board: "board:c"})
	w.shown(7, "pin:weak-seen")
	c := w.visit(2)
	expect.NoDiff(t, pinsOf(c.Served.Items), []schemas.PinID{"pin:best", "pin:weak-of-b"}, "items")
}

// For every pin of random pools, Why returns next if and only if a visit shows the pin. It returns hidden if and only
// if the pin is hidden.
func TestWhy_AgreesWithVisits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWhyFixture(t, func(_ *layout.Config, cfg *Config) {
			changeHome(cfg.Feeds, func(home *rules.Feed) {
				home.Caps = rules.Caps{Window: 4, Author: 1, Board: 1}
				home.Defer = rules.Defer{Margin: 3, Budget: 2, SessionTimeout: time.Hour, Expiry: 2 * time.Hour}
				home.Randomize = rules.Randomize{Candidates: rapid.SampledFrom([]int{0, 3}).Draw(rt, "randomized"), Temperature: 1}
			})
		})
		if rapid.Bool().Draw(rt, "block") {
			w.graph(layout.RegisterBlock, "board:1")
		}
		poolstest.SetState(w.rows, layout.State{Head: 1})
		cards := map[schemas.PinID]*schemas.Card{}
		for n := range rapid.IntRange(0, 25).Draw(rt, "pins") {
			author := schemas.UserID([]string{"user:a", "user:b"}[rapid.IntRange(0, 1).Draw(rt, "author")])
			for _, s := range []schemas.Source{schemas.Following, schemas.Related} {
				if rapid.Bool().Draw(rt, string(s)) { // each source may have another version of the pin
					f := schemas.Facets{Author: author, Board: schemas.BoardID(fmt.Sprintf("board:%d", rapid.IntRange(0, 3).Draw(rt, "board")))}
					cards[poolstest.PinID(n)] = w.deliver(s, poolstest.PinID(n), day*schemas.Micros(rapid.IntRange(0, 6).Draw(rt, "days")), f)
				}
			}
			if rapid.IntRange(0, 9).Draw(rt, "seen") == 0 {
				w.shown(int64(n+1), poolstest.PinID(n))
			}
		}
		said := map[schemas.PinID]*schemas.Why{}
		for pin, card := range cards {
			said[pin] = w.why(pin, card)
		}
		c := w.visit(3)
		for i, it := range c.Served.Items {
			why := said[it.Pin]
			if why.Fate != schemas.FateNext || why.Place != i+1 {
				rt.Fatalf("%s is item %d; Why returned %+v", it.Pin, i+1, why)
			}
			delete(said, it.Pin)
		}
		for pin, why := range said {
			if why.Fate == schemas.FateNext {
				rt.Fatalf("%s is not shown; Why returned %+v", pin, why)
			}
		}
	})
}

// For a user, a block by another user has the same result as a pin that no edge delivered. The user's own blocks are
// reported.
func TestWhy_MasksBlocksByOthers(t *testing.T) {
	undelivered := func(f schemas.Facets, followed bool) *schemas.Why {
		w := newWhyFixture(t, nil)
		if !followed {
			delete(w.rows, string(layout.GraphRow(layout.RegisterFollow, "user:a")))
		}
		return w.masked("pin:1", &schemas.Card{PinVersion: schemas.PinVersion{Pin: "pin:1", Version: 1, PinContent: schemas.PinContent{Facets: f, Created: w.now}, Quality: 1}})
	}
	for name, c := range map[string]struct {
		follows, shown, candidate bool
		own                       schemas.ID // blocked by the user
	}{
		"followed":                      {follows: true, candidate: true},
		"followed, no candidate":        {follows: true},
		"not followed":                  {candidate: true},
		"shown before":                  {follows: true, shown: true, candidate: true},
		"the user also blocks":          {follows: true, candidate: true, own: "user:a"},
		"the user blocks the board":     {follows: true, candidate: true, own: "board:b"},
		"the user blocks, no candidate": {follows: true, own: "user:a"},
	} {
		t.Run(name, func(t *testing.T) {
			results := map[bool]*schemas.Why{} // by whether the author blocks the user
			for _, blocked := range []bool{true, false} {
				w := newWhyFixture(t, nil)
				card := &schemas.Card{PinVersion: schemas.PinVersion{Pin: "pin:1", Version: 1, PinContent: schemas.PinContent{Facets: byA, Created: w.now}, Quality: 1}}
				if c.candidate {
					card = w.deliver(schemas.Following, "pin:1", 0, byA)
				}
				if !c.follows {
					delete(w.rows, string(layout.GraphRow(layout.RegisterFollow, "user:a")))
				}
				if c.shown {
					w.shown(1, "pin:1")
				}
				if c.own != "" {
					w.graph(layout.RegisterBlock, c.own)
				}
				if blocked {
					w.graph(layout.RegisterBlockedBy, "user:a")
				}
				results[blocked] = w.masked("pin:1", card)
			}
			want := results[false]
			if c.own == "" && !c.shown { // visible without the block
				want = undelivered(byA, c.follows)
			}
			if c.shown {
				want.Candidates = nil
			}
			expect.NoDiffBut(t, cmpopts.EquateEmpty(), results[true], want, "answer about a pin of a user who blocks")
		})
	}
}

func TestWhy_MasksWithoutCard(t *testing.T) {
	w := newWhyFixture(t, func(_ *layout.Config, cfg *Config) { cfg.HalfLife = time.Hour })
	w.deliver(schemas.Following, "pin:1", 0, byA)
	w.graph(layout.RegisterBlockedBy, "user:a")
	w.expect(w.masked("pin:1", nil), schemas.FateOut, schemas.ReasonUndelivered, "user:a")
	w.expect(w.why("pin:1", nil), schemas.FateHidden, schemas.ReasonBlock, "user:a")
}
