package generator

import (
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// The rules change while a chunk is composed. The chunk follows the previous rules in full, and the next one the new rules.
func TestSetFeeds_KeepsRulesOfChunkInProgress(t *testing.T) {
	d := newFakePools(5)
	for n := range 5 {
		poolstest.Deliver(d.rows, "friends", poolstest.Delivered{Pin: poolstest.PinID(n + 5), Version: 1, PoolScore: schemas.PoolScore(-n)})
	}
	only := func(source schemas.Source) rules.Feed {
		return rules.Feed{Shares: map[schemas.Source]float64{source: 1}, ShareWindow: 10}
	}
	withArm := only("friends")
	withArm.ExperimentArms = []rules.Arm{{Feed: "calm", Share: 1}}
	cfg := DefaultConfig()
	cfg.Feeds = rules.Feeds{"plain": withArm, "calm": only("editors")}
	var g *Generator
	g = generatorWith(t, cfg, Deps{Rows: d, Extensions: Extensions{Admit: func(schemas.UserID, string, rules.Candidate) bool {
		g.SetFeeds(rules.Feeds{"plain": only("friends")})
		return true
	}}})
	before := visit(t, g, "v1").Served
	expect.Equal(t, before.Arm, "calm", "the chunk in progress has the arm")
	expectPins(t, before.Items, "pin:0", "pin:1")
	g.Settle(poolstest.Owner, "v1", schemas.Failed)
	after := visit(t, g, "v2").Served
	expect.Equal(t, after.Arm, "", "arm of the next chunk")
	expectPins(t, after.Items, "pin:5", "pin:6")
	if shares := g.FeedShares(); len(shares) != 2 || shares[0].Source != "friends" {
		t.Errorf("shares %+v, want those of the new rules", shares)
	}
}

// The Served of a visit has the report timeout of the rules that the user follows.
func TestChunk_ReportTimeout(t *testing.T) {
	feed := rules.Feed{Shares: map[schemas.Source]float64{"editors": 1}, ShareWindow: 10, ReportTimeout: time.Hour}
	for seen, want := range map[rules.Seen]int64{"": 0, rules.Delivered: 0, rules.Reported: 3600e6} {
		cfg := DefaultConfig()
		arm := feed
		arm.Seen, arm.ExperimentArms = seen, nil
		feed.ExperimentArms = []rules.Arm{{Feed: "arm", Share: 1}}
		cfg.Feeds = rules.Feeds{"plain": feed, "arm": arm}
		g := generatorWith(t, cfg, Deps{Rows: newFakePools(5)})
		expect.NoDiff(t, visit(t, g, "v").Served.ReportWithin, want, "%q", seen)
	}
}
