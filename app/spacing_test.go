package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
)

// A feed with spacing separates pins with similar embeddings, as soon as the feature store has these.
func TestSpacing_SeparatesSimilarPins(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	home := cfg.Generator.Feeds[rules.Home]
	home.Spacing.Strength = 5
	home.Caps, home.Explore = rules.Caps{}, rules.Explore{}
	cfg.Generator.Feeds[rules.Home] = home
	cfg.Generator.Embeddings.Timeout = 10 * time.Second
	s := start(t, cfg)
	var events story
	now := time.Now()
	events.addAt(now.Add(-2*time.Hour), "follows", "user:reader", "follow", "user:author", nil)
	for i, embedding := range [][]float64{{1, 0}, {0, 1}, {0.1, 1}, {0, 2}} { // the newest, which ranks first, is the last
		events.addAt(now.Add(time.Duration(i-10)*time.Minute), "pins", "user:author", "create", fmt.Sprint("pin:", i), map[string]any{"embedding": embedding})
	}
	s.publish(events.events...)
	eventually.True(t, "the pin that differs is second", func() bool {
		page := get[feed.Page](s.api(), "/v1/users/user:reader/feed?limit=4&peek=true")
		return len(page.Items) == 4 && page.Items[0].ID == "pin:3" && page.Items[1].ID == "pin:0" && len(page.Degraded) == 0
	})
	why := get[schemas.Why](s.api(), "/v1/users/user:reader/feed/why?pin=pin:1")
	if why.Fate != schemas.FateNext || len(why.Candidates) != 1 || why.Candidates[0].Parts["spacing"] > -4.9 {
		t.Errorf("got %+v, want a reduction by 5", why)
	}
}

// The role process reads embeddings from Pinot, so it refuses a feed with spacing without Pinot.
func TestCheck_SpacingNeedsPinotForProcess(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.HTTP = "127.0.0.1:1"
	const want = "generator.feeds: spacing: the role process reads embeddings only from Pinot"
	reports := func(role Role, groups ...string) bool {
		err := cfg.Check(role, groups...)
		return err != nil && strings.Contains(err.Error(), want)
	}
	expect.False(t, reports(Process), "a configuration without spacing needs Pinot")
	home := cfg.Generator.Feeds[rules.Home]
	home.Spacing.Strength = 1
	cfg.Generator.Feeds[rules.Home] = home
	for role, needs := range map[Role]bool{Process: true, Serve: false, Dev: false} {
		expect.Equal(t, reports(role), needs, "%s: refused", role)
	}
	expect.False(t, reports(Process, "objects"), "a process without pools needs Pinot")
	cfg.Pinot.Brokers = []string{"127.0.0.1:1"}
	expect.False(t, reports(Process), "a process with Pinot is refused")
}
