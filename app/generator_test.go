package app

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle/visits"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// reading is a user who visits the feed home.
type reading struct {
	*started
	user     schemas.UserID
	limit    int
	shown    map[schemas.PinID]visits.Item
	accepted []string // degraded reasons; nil: none
}

func (r *reading) visit() []visits.Item {
	r.t.Helper()
	from := &visits.HTTP{URL: r.url(""), Client: &http.Client{Timeout: 2 * patience}, Feed: rules.Home, Limit: r.limit}
	page, err := from.Visit(r.t.Context(), r.user)
	unexpected := slices.ContainsFunc(page.Degraded, func(why string) bool { return !slices.Contains(r.accepted, why) })
	if err != nil || unexpected {
		r.t.Fatalf("visit of %s: degraded %v, %v", r.user, page.Degraded, err)
	}
	var fresh []visits.Item
	for _, item := range page.Items {
		if !item.New {
			continue
		}
		if _, again := r.shown[item.Pin]; again {
			r.t.Errorf("%s is new twice", item.Pin)
		}
		r.shown[item.Pin] = item
		fresh = append(fresh, item)
	}
	return fresh
}

// generatorEvents returns twenty authors whom the reader follows, with 120 pins that also the reader's interest delivers,
// and sixty old pins by other authors, which only the interest delivers.
func generatorEvents(now time.Time) []map[string]any {
	var s story
	for a := range 20 {
		s.addAt(now, "follows", "user:reader", "follow", fmt.Sprintf("user:author-%d", a), nil)
	}
	s.addAt(now, "follows", "user:reader", "follow", "interest:tea", nil)
	s.addAt(now, "follows", "user:other", "follow", "interest:tea", nil)
	for n := range 120 {
		more := map[string]any{"board": fmt.Sprintf("board:%d", n%30), "interests": []string{fmt.Sprintf("interest:%d", n%9), "interest:tea"}}
		s.addAt(now.Add(-time.Duration(n)*time.Minute), "pins", fmt.Sprintf("user:author-%d", n%20), "create", fmt.Sprintf("pin:%d", n), more)
	}
	for n := range 60 { // seven time constants older than the others
		more := map[string]any{"interests": []string{"interest:tea"}}
		s.addAt(now.Add(-7*24*time.Hour), "pins", fmt.Sprintf("user:writer-%d", n), "create", fmt.Sprintf("pin:old-%d", n), more)
	}
	return s.events
}

// The feed applies every rule: shares, exploration until enough impressions, and deferral. "why" explains each.
func TestGenerator_AppliesEveryRule(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	home := cfg.Generator.Feeds[rules.Home]
	home.Shares = maps.Clone(home.Shares)
	home.Shares[schemas.Explore] = 0.25
	home.Explore = rules.Explore{PinImpressions: 1}
	home.Defer.Margin, home.Defer.Budget = 5, 0
	cfg.Generator.Feeds[rules.Home] = home
	cfg.Objects.Hot.MinEngagement = 1
	s := start(t, cfg)
	now := time.Now()
	s.publish(generatorEvents(now)...)
	r := &reading{started: s, user: "user:reader", limit: 50, shown: map[schemas.PinID]visits.Item{}}
	whyOf := func(pin schemas.PinID, want string) {
		t.Helper()
		expect.Contains(t, must.Get(s.run("query", "why", string(r.user), string(pin)))(t), want, "why of %s", pin)
	}

	first := r.visit()
	r.wait()
	bySource := map[schemas.Source]int{}
	for _, item := range first {
		bySource[item.Source]++
	}
	if n := bySource[schemas.Explore]; len(first) != 50 || n < 9 || n > 13 || bySource[schemas.Following] < bySource[schemas.FromInterest] {
		t.Errorf("%d items by source: %v, want 50, about 11 from exploration, and twice as many from following as from interest", len(first), bySource)
	}
	whyOf(first[0].Pin, "was shown")
	whyOf("pin:old-1", "is deferred")
	whyOf("pin:nowhere", "the pin is unknown")
	expect.Equal(t, must.Get(s.feed.Waiting(t.Context(), r.user))(t), 70, "Waiting")
	second, third := r.visit(), r.visit()
	r.wait()
	if len(second) != 50 || len(third) != 20 || len(r.visit()) != 0 {
		t.Errorf("next visits: %d and %d items, want 20 and 0 after 50", len(second), len(third))
	}
	effects := map[string]int64{}
	for _, g := range s.groups {
		maps.Copy(effects, g.Status().Effects)
	}
	expect.Equal(t, effects["deferred"], 30, "deferred, one for each free place, in %v", effects)

	// Pins that one reader has seen are candidates of another, but none of them is explored.
	other := &reading{started: s, user: "user:other", limit: 50, shown: map[schemas.PinID]visits.Item{}}
	for _, item := range other.visit() {
		expect.False(t, item.Source == schemas.Explore, "%s is explored, although it has impressions", item.Pin)
	}
	s.publish(event(now, "block", "follows", "user:reader", "block", "user:writer-2", nil))
	whyOf("pin:old-2", "the user or the author blocked the other (user:writer-2)")
}

// After a restart, chunks are as large as before, and no pin is served twice.
func TestGenerator_BuildsFullChunksAfterRestart(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	s := start(t, cfg)
	s.publish(generatorEvents(time.Now())...)
	r := &reading{started: s, user: "user:reader", limit: 30, shown: map[schemas.PinID]visits.Item{}}
	before := len(r.visit())
	s.stop()
	s = start(t, cfg)
	r.started = s
	if after := len(r.visit()); before != 30 || after < before {
		t.Errorf("%d items before, %d after, want 30 both times", before, after)
	}
}
