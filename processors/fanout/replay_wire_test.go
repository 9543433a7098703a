package fanout_test

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// A replayed version is not delivered. A later follower receives it with its new score, and a deleted pin as deleted. A
// replay of an older version changes nothing.
func TestReplay_ChangesScoreWithoutDelivery(t *testing.T) {
	w, _ := start(t, fanout.Config{ScoreHalfLife: halfLife, StepFollowers: 3, MaxRecentPublications: 1000, PullThreshold: never})
	const author = "user:author"
	replay := func(versions ...schemas.PinVersion) {
		for _, v := range versions {
			proctest.Publish(w, w.Streams.Publications, author, &schemas.Publication{Followee: author, PinVersion: v, Replayed: true})
		}
	}
	publish(w, follow("early", 0, "user:early", schemas.Follow, author))
	w.WaitIdle()
	one, two, three, unknown := pinOf(author, 1, 10), pinOf(author, 2, 20), pinOf(author, 3, 30), pinOf(author, 4, 40)
	announce(w, author, one, two, three)
	w.WaitIdle()
	before := deliveries(t, w, author)
	must.Equal(t, len(before), 3, "deliveries before the replay")

	one.Quality = 7 // the same version
	newer := two
	newer.Version, newer.Quality = two.Version+1, 9
	three.Deleted = true
	three.Version++
	replay(one, newer, two, three, unknown, one)
	w.WaitIdle()
	expect.NoDiff(t, deliveries(t, w, author), before, "deliveries after the replay")

	publish(w, follow("late", 100, "user:late", schemas.Follow, author))
	w.WaitIdle()
	type place struct {
		score   schemas.BaseScore
		version schemas.Version
		deleted bool
	}
	got, want := map[schemas.PinID]place{}, map[schemas.PinID]place{}
	for _, r := range proctest.Drain(w, w.Streams.Deliveries) {
		if r.Value.Users[0] != "user:late" {
			continue
		}
		for _, p := range r.Value.Pins {
			got[p.Pin] = place{p.BaseScore, p.Version, p.Deleted}
		}
	}
	for _, v := range []schemas.PinVersion{one, newer, three, unknown} {
		want[v.Pin] = place{score.Base(v.Quality, v.Created, halfLife), v.Version, v.Deleted}
	}
	expect.Equal(t, len(got), len(want), "pins delivered")
	for pin, w := range want {
		expect.Equal(t, got[pin], w, "%s", pin)
	}
}
