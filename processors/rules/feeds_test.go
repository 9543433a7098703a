package rules

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// loaded decodes text over the default feeds.
func loaded(text string) (Feeds, error) {
	cfg := struct {
		Feeds Feeds `yaml:"feeds"`
	}{Default()}
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	err := dec.Decode(&cfg)
	return cfg.Feeds, err
}

func TestFeeds_UnmarshalOverBase(t *testing.T) {
	home, plain := Default()[Home], Default()["plain"]
	changed := func(f Feed, change func(*Feed)) Feed {
		change(&f)
		return f
	}
	arms := []Arm{{Feed: "calm", Share: 0.1}}
	for name, c := range map[string]struct {
		text string
		want Feeds
	}{
		"nothing": {"feeds: {}", Default()},
		"a change": {"feeds: {home: {share_window: 50, caps: {author: 1}}}",
			Feeds{Home: changed(home, func(f *Feed) { f.ShareWindow, f.Caps.Author = 50, 1 }), "plain": plain}},
		"a new feed is based on home": {"feeds: {work: {affinity_weight: 2}}",
			Feeds{Home: home, "plain": plain, "work": changed(home, func(f *Feed) { f.AffinityWeight = 2 })}},
		"a feed without changes": {"feeds: {home: , work: }", Feeds{Home: home, "plain": plain, "work": home}},
		"an anchor": {"feeds: {a: &base {caps: {author: 1}}, b: {<<: *base, affinity_weight: 2}}", Feeds{Home: home, "plain": plain,
			"a": changed(home, func(f *Feed) { f.Caps.Author = 1 }),
			"b": changed(home, func(f *Feed) { f.Caps.Author, f.AffinityWeight = 1, 2 })}},
		"shares are added": {"feeds: {plain: {shares: {related: 0, editors: 0.5}}}",
			Feeds{Home: home, "plain": changed(plain, func(f *Feed) {
				f.Shares = map[schemas.Source]float64{schemas.Following: 0.6, schemas.FromInterest: 0.3, schemas.Related: 0, "editors": 0.5}
			})}},
		"a new feed is based on the changed home": {"feeds: {calm: {shares: {related: 0}, defer: {session_timeout: 1h}}, home: {share_window: 50, experiment_arms: [{feed: calm, share: 0.1}]}}",
			Feeds{
				Home: changed(home, func(f *Feed) { f.ShareWindow, f.ExperimentArms = 50, arms }),
				"calm": changed(home, func(f *Feed) {
					f.ShareWindow, f.Defer.SessionTimeout, f.Shares = 50, time.Hour, maps.Clone(f.Shares)
					f.Shares[schemas.Related] = 0
				}),
				"plain": plain,
			}},
	} {
		t.Run(name, func(t *testing.T) {
			got := must.Get(loaded(c.text))(t)
			expect.NoDiffBut(t, equateEmpty, got, c.want, "feeds")
			must.OK(t, got.Validate())
		})
	}
}

func TestFeeds_UnmarshalListsAllProblems(t *testing.T) {
	_, err := loaded(`feeds:
  home: {memry: 50, caps: {auther: 1}}
  work:
    share_window: many
    experiment_arms:
      - {feed: home, shar: 1}
  d: 7
`)
	types := must.As[*yaml.TypeError](t, err)
	want := []string{
		"line 2: field memry not found", "line 2: field auther not found", "line 7: cannot unmarshal !!int `7` into rules.Feed",
		"line 4: cannot unmarshal !!str `many` into int", "line 6: field shar not found",
	}
	expect.Equal(t, len(types.Errors), len(want), "problems: %q", types.Errors)
	for i, text := range want {
		if i < len(types.Errors) && !strings.HasPrefix(types.Errors[i], text) {
			t.Errorf("problem %d: got %q, want %q", i, types.Errors[i], text)
		}
	}
	expect.Error(t, expect.ErrorOf(loaded("feeds: [home]")), "line 1: cannot unmarshal !!seq", "a list")
}

func TestFeeds_MarshalRoundTrip(t *testing.T) {
	text := must.Get(yaml.Marshal(map[string]any{"feeds": Default()}))(t)
	got := must.Get(loaded(string(text)))(t)
	expect.NoDiffBut(t, equateEmpty, got, Default(), "feeds")
}

func TestFeeds_Validate(t *testing.T) {
	must.OK(t, Default().Validate())
	expect.Equal(t, fmt.Sprint((Feeds{}).Validate()), "feeds: want at least one", "no feeds")
	bad := Feed{
		Shares: map[schemas.Source]float64{"s": -1, "t": math.Inf(1)}, DefaultShare: math.NaN(), ShareWindow: 9,
		AffinityWeight: math.NaN(), PopularityWeight: -1, ModelWeight: 101,
		Caps:           Caps{Window: -1, Author: 101, Board: -1, Interest: -1},
		Defer:          Defer{Margin: -1, Budget: -1, SessionTimeout: 1},
		Explore:        Explore{PinImpressions: -1, AuthorImpressions: -1},
		ExperimentArms: []Arm{{Feed: "nowhere", Share: 0}, {Feed: "armed", Share: 2}},
	}
	err := Feeds{"x": bad, "armed": {Shares: map[schemas.Source]float64{schemas.Explore: 1}, ShareWindow: 10, ExperimentArms: []Arm{{Feed: "y", Share: 1}},
		Defer: Defer{Margin: 1}}, "y": Default()["plain"]}.Validate()
	want := strings.Split(`armed.shares: all are 0, so no pin would ever be shown: want one above 0
armed.defer.session_timeout: 0s: want at least 1s
x.share_window: 9: want 10 to 10000
x.affinity_weight: NaN: want 0 to 100
x.popularity_weight: -1: want 0 to 100
x.model_weight: 101: want 0 to 100
x.caps.window: -1: want 0 to 100
x.caps.author: 101: want 0 to 100
x.caps.board: -1: want 0 to 100
x.caps.interest: -1: want 0 to 100
x.explore.pin_impressions: -1: want 0 to 1000000000
x.explore.author_impressions: -1: want 0 to 1000000000
x.default_share: NaN: want 0 or more
x.shares.s: -1: want 0 or more
x.shares.t: +Inf: want 0 or more
x.defer.margin: -1: want 0 to 1000
x.defer.budget: -1: want 0 to 10000
x.defer.expiry: 0s: want at least defer.session_timeout, 1ns
x.experiment_arms[0].share: 0: want above 0
x.experiment_arms[0].feed: "nowhere": no such feed
x.experiment_arms[1].feed: "armed": want a feed without arms
x.experiment_arms: sum of shares: 2: want at most 1`, "\n")
	got := strings.Split(strings.ReplaceAll(err.Error(), "feeds.", ""), "\n")
	expect.NoDiff(t, got, want, "arms")
}

// Each arm gets its share of the users and keeps them when arms are added after it. The arms of two feeds are independent.
func TestFor_SplitsUsersIntoArms(t *testing.T) {
	home := Feed{ShareWindow: 1, ExperimentArms: []Arm{{Feed: "a", Share: 0.2}, {Feed: "b", Share: 0.3}}}
	fs := Feeds{Home: home, "other": {ShareWindow: 2, ExperimentArms: []Arm{{Feed: "a", Share: 0.5}}}, "a": {ShareWindow: 3}, "b": {ShareWindow: 4}, "c": {ShareWindow: 5}}
	longer := Feeds{Home: {ShareWindow: 1, ExperimentArms: append(home.ExperimentArms, Arm{Feed: "c", Share: 0.5})}, "a": fs["a"], "b": fs["b"], "c": fs["c"]}
	const users = 20000
	count, both := map[string]float64{}, 0.0
	for i := range users {
		user := schemas.UserID(fmt.Sprintf("user:%d", i))
		rules, arm, ok := fs.For(Home, user)
		count[arm]++
		if want := map[string]int{"": 1, "a": 3, "b": 4}[arm]; !ok || rules.ShareWindow != want {
			t.Fatalf("%s is in %q with the rules %d, want %d", user, arm, rules.ShareWindow, want)
		}
		if _, later, _ := longer.For(Home, user); arm != "" && later != arm || arm == "" && later != "c" {
			t.Fatalf("%s moved from arm %q to %q", user, arm, later)
		}
		if _, other, _ := fs.For("other", user); other == "a" && arm == "a" {
			both++
		}
	}
	for arm, want := range map[string]float64{"": 0.5, "a": 0.2, "b": 0.3} {
		expect.Near(t, count[arm]/users, want, 0.015, "share of the users in arm %q", arm)
	}
	expect.Near(t, both/users, 0.1, 0.015, "share of the users in both arms")
	_, _, ok := fs.For("nowhere", "user:1")
	expect.False(t, ok, "a feed that does not exist")
}

func TestFeeds_ValidatesSeen(t *testing.T) {
	for _, c := range []struct {
		seen    Seen
		timeout time.Duration
		want    string // in the error; "": none
	}{
		{"", 0, ""},
		{Delivered, 0, ""},
		{Reported, time.Minute, ""},
		{Reported, 30 * 24 * time.Hour, ""},
		{Reported, 0, "feeds.x.report_timeout: 0s: want 1m to 720h"},
		{Reported, 30*24*time.Hour + 1, "want 1m to 720h"},
		{"shown", 0, `feeds.x.seen: "shown": want delivered or reported`},
		{Delivered, 1, ""}, // inherited from another feed
	} {
		feed := Default()["plain"]
		feed.Seen, feed.ReportTimeout = c.seen, c.timeout
		expect.Error(t, Feeds{"x": feed}.Validate(), c.want, "%q, %s", c.seen, c.timeout)
	}
}
