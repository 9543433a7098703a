package generator

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

func (w *whyFixture) state() *schemas.FeedState {
	w.t.Helper()
	return must.Get(w.g.FeedState(w.t.Context(), poolstest.Owner, rules.Home))(w.t)
}

// The state reflects what visits show, defer, and remove from the pools.
func TestFeedState_AfterVisits(t *testing.T) {
	w := newWhyFixture(t, func(_ *layout.Config, cfg *Config) {
		changeHome(cfg.Feeds, func(home *rules.Feed) {
			home.Defer = rules.Defer{Margin: 2, SessionTimeout: time.Hour, Expiry: 2 * time.Hour}
			home.Shares = map[schemas.Source]float64{schemas.Following: 3, schemas.FromInterest: 1}
		})
	})
	w.deliver(schemas.Following, "pin:strong", 0, byA)
	w.deliver(schemas.Following, "pin:weak", 3*day, byA)
	standing := func(waiting int, shown float64) []schemas.SourceState {
		return []schemas.SourceState{
			{Source: schemas.Following, Waiting: waiting, Target: 0.75, Shown: shown},
			{Source: schemas.FromInterest, Target: 0.25},
		}
	}
	want := &schemas.FeedState{
		Feed: rules.Home, Sources: standing(2, 0), Deferred: []schemas.DeferredCandidate{{Pin: "pin:weak", Reason: schemas.ReasonWeak}},
	}
	expect.NoDiff(t, w.state(), want, "before a visit")
	c := w.visit(3)
	w.apply(t, &c.Served)
	want.Sources = standing(1, 1)
	want.Deferred = []schemas.DeferredCandidate{{Pin: "pin:weak", Reason: schemas.ReasonDeferredEarlier, Since: schemas.Timestamp(w.now)}}
	expect.NoDiff(t, w.state(), want, "after a visit")
}

func TestFeedState_Errors(t *testing.T) {
	w := newWhyFixture(t, nil)
	expect.Is(t, expect.ErrorOf(w.g.FeedState(t.Context(), poolstest.Owner, "work")), schemas.ErrUnknownFeed, "error")
	expect.Empty(t, must.Get(w.g.FeedState(t.Context(), "user:deleted", rules.Home))(t).Sources, "sources of a deleted user")
	w.rows[string([]byte{layout.KindAffinities})] = []byte{1, 2, 3}
	if s := w.state(); len(s.Affinities) != 0 || !slices.Equal(s.Degraded, []string{degradedAffinities}) {
		t.Errorf("unreadable affinities: %+v", s)
	}
	w.session = 0
	expect.Is(t, expect.ErrorOf(w.g.FeedState(t.Context(), poolstest.Owner, rules.Home)), schemas.ErrNotOwner, "state")
}

// Items of chunks are counted by source. Sources that the feed does not name are counted together.
func TestFeedShares_CountItems(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Feeds = rules.Feeds{
		"plain": {Shares: map[schemas.Source]float64{schemas.Following: 1}, DefaultShare: 0.5, ShareWindow: 100, ExperimentArms: []rules.Arm{{Feed: "calm", Share: 0.1}}},
		"calm":  {DefaultShare: 1, ShareWindow: 100},
	}
	d := newFakePools(5)
	g := generatorWith(t, cfg, Deps{Rows: d, Metrics: prometheus.NewRegistry()})
	visit(t, g, "v1")
	want := []schemas.FeedShare{
		{Feed: "calm", Source: "others", Target: 1},
		{Feed: "plain", Source: schemas.Following, Target: 1},
		{Feed: "plain", Source: "others", Target: 0.5, Items: 2},
		{Feed: "plain", Arm: "calm", Source: "others", Target: 1},
	}
	expect.NoDiff(t, g.FeedShares(), want, "shares")
}
