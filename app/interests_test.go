package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// A term that many authors use becomes an interest when an operator accepts it. Users who act on its pins get the interest
// with evidence, and the API reports the engagement with its pins by source.
func TestInterests_FollowDecisions(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	now := time.Now()
	history := &story{now: now.Add(-100 * time.Second)}
	for i := range 6 {
		author := fmt.Sprintf("user:a%d", i)
		history.add("follows", "user:reader", "follow", author, nil)
		history.add("pins", author, "create", fmt.Sprintf("pin:%d", i), map[string]any{"title": fmt.Sprintf("Wulong tea, no %d", i), "interests": []string{"interest:drinks"}})
	}
	s.publish(history.events...)
	d := s.api()
	says := func(path string, wants ...string) {
		t.Helper()
		text := strings.ReplaceAll(d.get(path), " ", "")
		for _, want := range wants {
			expect.Contains(t, text, want, "%s", path)
		}
	}
	says("/v1/dictionary", `{"terms":[{"term":"wulongtea","state":"candidate"`, `"pins":6,"people":6`)
	const accepted = `{"term":"Wulong Tea","state":"accepted","interest":"interest:oolong","operator":"ann"}`
	d.answers(200, "", "/v1/dictionary/decisions", accepted)
	d.answers(200, "", "/v1/dictionary/decisions", `{"term":"tea","state":"rejected","reason":"too broad"}`)
	s.wait()
	says("/v1/dictionary?state=accepted", `"term":"wulongtea"`, `"interest":"interest:oolong"`, `"operator":"ann"`, `"pins":6`)
	says("/v1/dictionary?state=rejected", `"reason":"toobroad"`)
	if text := d.get("/v1/dictionary"); strings.Contains(text, `"wulong tea"`) || !strings.Contains(text, `"wulong"`) {
		t.Errorf("candidates after the decisions: %s", text)
	}
	d.get("/v1/users/user:reader/feed?limit=10")
	s.wait() // an action at once may count for another source
	s.publish(event(time.Now(), "save", "actions", "user:reader", "save", "pin:3", nil), event(time.Now(), "click", "actions", "user:stranger", "click", "pin:3", nil))
	says("/v1/users/user:reader/interests", `"interest":"interest:oolong"`, `"interest":"interest:drinks"`, `"pin":"pin:3","verb":"save"`)
	says("/v1/interests/interest:oolong/engagement", `"source":"following","counts":{"impression":6,"save":1}`, `"source":"direct","counts":{"click":1}`)
	must.Get(s.run("erase", "user:reader"))(t)
	says("/v1/users/user:reader/interests", `{"interests":[]}`)
}
