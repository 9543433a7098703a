package pools

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/memrows"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
)

// trimOf trims a pool as the callbacks do.
func trimOf(t must.T, m memrows.Table, source schemas.Source, limit int) map[string]int {
	list, trimmed, err := trimRows(poolstest.View(t, m), source, limit, sweepsNone)
	must.OK(t, err)
	dropped := map[string]int{}
	for i, reason := range trimmed.reasons {
		if reason != "" {
			dropped[reason]++
			delete(m, list[i].Name)
		}
	}
	return dropped
}

// While no cap is exceeded, a pool equals the oracle of all deliveries, for any order of arrival, repetitions and trims.
func TestPool_EqualsOracleInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const plenty = 10
		w, all := poolstest.DrawWorld(t), poolstest.DrawVersions(t, plenty)
		order := append(slices.Clone(all), rapid.SliceOfN(rapid.SampledFrom(all), 0, 5).Draw(t, "repeats")...)
		for _, d := range rapid.Permutation(order).Draw(t, "order") {
			poolstest.Deliver(w.Table, schemas.Following, d)
			if rapid.IntRange(0, 3).Draw(t, "trim") == 0 {
				trimOf(t, w.Table, schemas.Following, plenty)
			}
		}
		n := rapid.IntRange(1, plenty).Draw(t, "n")
		want := poolstest.Oracle(all, w.Visible, w.Seen, n)
		expect.NoDiff(t, poolstest.PoolOf(t, w.Table, schemas.Following, n), want, "pool")
	})
}

// With additions only, this also holds beyond the caps.
func TestPool_KeepsBestBeyondCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 5
		w := poolstest.DrawWorld(t)
		var all []poolstest.Delivered
		for i := range rapid.IntRange(1, 40).Draw(t, "pins") {
			all = append(all, poolstest.Delivered{
				Pin: poolstest.PinID(i), Version: 1, PoolScore: schemas.PoolScore(rapid.IntRange(0, 9).Draw(t, "score")), PinContent: schemas.PinContent{Facets: poolstest.DrawFacets(t)},
			})
		}
		dropped := 0
		for _, d := range rapid.Permutation(all).Draw(t, "order") {
			poolstest.Deliver(w.Table, schemas.Following, d)
			if rapid.IntRange(0, limit).Draw(t, "trim") == 0 {
				for _, n := range trimOf(t, w.Table, schemas.Following, limit) {
					dropped += n
				}
			}
		}
		want := poolstest.Oracle(all, w.Visible, w.Seen, limit)
		expect.NoDiff(t, poolstest.PoolOf(t, w.Table, schemas.Following, limit), want, "pool")
		for _, n := range trimOf(t, w.Table, schemas.Following, limit) {
			dropped += n
		}
		list := must.Get(layout.CandidateRows(w.Table, schemas.Following))(t)
		expect.AtMost(t, len(list), 2*limit, "rows after a trim: visible ones, and as many hidden")
		expect.Equal(t, dropped+len(list), len(all), "%d dropped and %d kept, in total", dropped, len(list))
	})
}

func TestTrim_Reasons(t *testing.T) {
	m := memrows.Table{string(layout.GraphRow(layout.RegisterFollow, "user:a")): layout.AppendFollow(nil, 0, 1)}
	poolstest.See(m, "pin:seen", 2)
	poolstest.See(m, "pin:elsewhere", 3)
	poolstest.SetState(m, layout.State{Head: 3, SeenTrimmed: 1, Refused: -5})
	followed, other := schemas.Facets{Author: "user:a"}, schemas.Facets{Author: "user:b"}
	for _, d := range []poolstest.Delivered{
		{Pin: "pin:best", Version: 1, PoolScore: 9, PinContent: schemas.PinContent{Facets: followed}},
		{Pin: "pin:best", Version: 2, PoolScore: 8, PinContent: schemas.PinContent{Facets: followed}}, // the highest version
		{Pin: "pin:best", Version: 1, PoolScore: 7, PinContent: schemas.PinContent{Facets: followed}}, // neither the best nor the highest
		{Pin: "pin:seen", Version: 1, PoolScore: 6, PinContent: schemas.PinContent{Facets: followed}}, // does not count against the cap
		{Pin: "pin:second", Version: 1, PoolScore: 5, PinContent: schemas.PinContent{Facets: followed}},
		{Pin: "pin:moved", Version: 1, PoolScore: 5, PinContent: schemas.PinContent{Facets: followed, Created: 1}}, // its highest version has another place
		{Pin: "pin:moved", Version: 2, PoolScore: 1, PinContent: schemas.PinContent{Facets: followed}},
		{Pin: "pin:old", Version: 1, PoolScore: 4, PinContent: schemas.PinContent{Facets: followed, Created: -6}},
		{Pin: "pin:hidden", Version: 1, PoolScore: 3, PinContent: schemas.PinContent{Facets: other}},
		{Pin: "pin:deleted", Version: 1, PoolScore: 2, PinContent: schemas.PinContent{Facets: followed, Deleted: true}},
		{Pin: "pin:hidden3", Version: 1, PoolScore: 1, PinContent: schemas.PinContent{Facets: other}},
	} {
		poolstest.Deliver(m, schemas.Following, d)
	}
	want := map[string]int{dropRedundant: 2, dropSeen: 1, dropCap: 1, dropSeenTrimmed: 1, dropHiddenCap: 1}
	expect.NoDiff(t, trimOf(t, m, schemas.Following, 2), want, "trim")
	pool := []poolstest.Waiting{{Pin: "pin:best", PoolScore: 9}, {Pin: "pin:second", PoolScore: 5}}
	expect.NoDiff(t, poolstest.PoolOf(t, m, schemas.Following, 9), pool, "pool")
	expect.Equal(t, len(trimOf(t, m, schemas.Following, 2)), 0, "rows that a second trim drops")
}

func TestView_HidesExpiredAndDeletedAuthors(t *testing.T) {
	m := memrows.Table{}
	poolstest.Deliver(m, "editors", poolstest.Delivered{Pin: "pin:new", Version: 1, PinContent: schemas.PinContent{Created: 90e6, Facets: schemas.Facets{Author: "user:a"}}})
	poolstest.Deliver(m, "editors", poolstest.Delivered{Pin: "pin:old", Version: 1, PinContent: schemas.PinContent{Created: 20e6, Facets: schemas.Facets{Author: "user:a"}}})
	poolstest.Deliver(m, "editors", poolstest.Delivered{Pin: "pin:orphan", Version: 1, PinContent: schemas.PinContent{Created: 90e6, Facets: schemas.Facets{Author: "user:deleted"}}})
	v, err := layout.NewView(m, poolstest.Owner, deletedtest.Of("user:deleted"), schemas.Micros(100e6).Time(), 60e9, new(layout.Buffers))
	must.OK(t, err)
	all := poolstest.Best(t, v, "editors", 10)
	if len(all) != 1 || all[0].Pin != "pin:new" {
		t.Errorf("got %v, want pin:new", all)
	}
}
