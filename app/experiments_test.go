package app

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// The insights compare the arms of a running product: each user with a visit is in the arm of the rules, with the saves after
// the visit.
func TestExperiments_CompareArmsOfFeed(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	home := cfg.Generator.Feeds[rules.Home]
	home.ExperimentArms = []rules.Arm{{Feed: "plain", Share: 0.5}}
	cfg.Generator.Feeds[rules.Home] = home
	s := start(t, cfg)
	const users = 12
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	var events story
	events.addAt(at, "pins", "user:author", "create", "pin:1", map[string]any{"interests": []string{}})
	for i := range users {
		events.addAt(at.Add(-time.Hour), "follows", fmt.Sprint("user:", i), "follow", "user:author", nil)
	}
	s.publish(events.events...)
	want := map[string]int{}
	for i := range users {
		user := fmt.Sprint("user:", i)
		expect.Contains(t, s.api().get("/v1/users/"+user+"/feed"), "pin:1", "feed of %s", user)
		_, arm, _ := cfg.Generator.Feeds.For(rules.Home, schemas.UserID(user))
		want[arm]++
	}
	events = story{prefix: "saves"}
	for i := range users {
		events.addAt(time.Now(), "actions", fmt.Sprint("user:", i), "save", "pin:1", nil)
	}
	s.publish(events.events...)
	var got struct{ Feeds []experiment.Experiment }
	must.OK(t, json.Unmarshal([]byte(s.api().get("/v1/insights/experiments?days=2&actions=save")), &got))
	if len(got.Feeds) != 2 || got.Feeds[0].Feed != rules.Home || len(got.Feeds[0].Arms) != 2 || got.Feeds[0].SampleRatio == nil {
		t.Fatalf("got %+v, want the feeds home, with two arms, and plain", got.Feeds)
	}
	for _, a := range got.Feeds[0].Arms {
		n := want[a.Arm]
		if n == 0 || a.Users != n || a.Visits != n || a.Items != n || a.Share != 0.5 || a.Actions[0].Count != n || a.Actions[0].PerItem.Value != 1 {
			t.Errorf("arm %q: got %+v, want %d users with a visit, an item and a save each", a.Arm, a, n)
		}
	}
}
