package generator

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/memrows"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// slot returns the record of the topic recents-pulled for a version.
func slot(followee schemas.Followee, n int, d poolstest.Delivered, withdrawn bool) *schemas.PulledPin {
	return &schemas.PulledPin{Followee: followee, Slot: int32(n), Withdrawn: withdrawn, DeliveredPin: schemas.DeliveredPin{
		Pin: d.Pin, Version: d.Version, PinContent: d.PinContent, BaseScore: schemas.BaseScore(d.PoolScore),
	}}
}

// Some versions are pushed, and some are in slots of followees, which are added, changed and removed. The user does not
// follow all of these followees. The pool equals the oracle of all versions that reach the user, with the newest content of
// each pin in any slot.
func TestPulled_MergesWithPushed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := poolstest.DrawWorld(t)
		for _, followee := range []schemas.ID{"user:a", "board:a"} {
			if weight := rapid.SampledFrom([]float32{1, 2}).Draw(t, "weight"); w.Follows(followee) {
				w.Graph.Follows[followee] = weight
				w.Table[string(layout.GraphRow(layout.RegisterFollow, followee))] = layout.AppendFollow(nil, 0, weight)
			}
		}
		pulled := new(Pulled)
		var reaches []poolstest.Delivered // including the weight of the edge
		slots := map[string]*schemas.PulledPin{}
		fill := func(s *schemas.PulledPin) {
			key := schemas.PulledKey(s.Followee, s.Slot)
			pulled.Change(key, slots[key], s)
			slots[key] = s
		}
		for i, d := range rapid.Permutation(poolstest.DrawVersions(t, 8)).Draw(t, "order") {
			if rapid.Bool().Draw(t, "pushed") {
				poolstest.Deliver(w.Table, schemas.Following, d)
				reaches = append(reaches, d)
				continue
			}
			followee := rapid.SampledFrom([]schemas.Followee{"user:a", "user:c", "board:a", "interest:x"}).Draw(t, "followee")
			if i%3 == 0 {
				fill(slot(followee, i, poolstest.Delivered{Pin: "pin:other", Version: 99, PoolScore: 99}, false))
			}
			fill(slot(followee, i, d, rapid.IntRange(0, 4).Draw(t, "withdrawn") == 0))
		}
		var known []poolstest.Delivered
		for _, s := range slots {
			d := poolstest.Delivered{Pin: s.Pin, Version: s.Version, PinContent: schemas.PinContent{Created: s.Created, Deleted: s.Deleted, Facets: s.Facets}, PoolScore: score.Weighted(s.BaseScore, 1)}
			if weight := w.Graph.Follows[schemas.ID(s.Followee)]; weight > 0 && !s.Withdrawn && s.Followee.Source() == schemas.Following {
				d.PoolScore = score.Weighted(s.BaseScore, weight)
				reaches = append(reaches, d)
			}
			known = append(known, d)
		}
		n := rapid.IntRange(1, 12).Draw(t, "n")
		v := &view{poolstest.View(t, w.Table), pulled}
		all := must.Get(v.best(schemas.Following, n))(t)
		got := convert.All(all, func(c layout.Candidate) poolstest.Waiting {
			return poolstest.Waiting{Pin: c.Pin, PoolScore: c.PoolScore}
		})
		expect.NoDiff(t, got, mergedOracle(reaches, known, w, n), "pool")
	})
}

// mergedOracle returns the oracle of the versions that reach the user. Each has the content of the highest known version.
// Versions with another creation time than that one are dropped.
func mergedOracle(reaches, known []poolstest.Delivered, w poolstest.World, n int) []poolstest.Waiting {
	truth := map[schemas.PinID]poolstest.Delivered{}
	for _, d := range append(slices.Clone(known), reaches...) {
		if best, ok := truth[d.Pin]; !ok || d.Version > best.Version {
			truth[d.Pin] = d
		}
	}
	var all []poolstest.Delivered
	for _, d := range reaches {
		if best := truth[d.Pin]; best.Created == d.Created {
			best.PoolScore = d.PoolScore
			all = append(all, best)
		}
	}
	return poolstest.Oracle(all, w.Visible, w.Seen, n)
}

func TestPulled_RemovesPinsThatLeaveSlots(t *testing.T) {
	var p Pulled
	pin := func(n int) poolstest.Delivered {
		return poolstest.Delivered{Pin: poolstest.PinID(n), Version: 1, PoolScore: schemas.PoolScore(n % 2)}
	}
	for i := range 10 {
		p.Change("", nil, slot("user:a", i, pin(i), i%5 == 4))
	}
	expect.NoDiff(t, p.sources(map[schemas.ID]float32{"user:a": 1, "interest:x": 1}, nil), []schemas.Source{schemas.Following}, "sources")
	list := slices.Clone(p.lists["user:a"])
	removed := slices.Concat(p.pins[poolstest.PinID(4)], p.pins[poolstest.PinID(9)])
	for _, s := range append(list, removed...) {
		p.Change("", s, nil)
	}
	expect.Equal(t, [2]int{len(p.lists), len(p.pins)}, [2]int{}, "remaining lists and pins")
}

// Trims remove seen pins from the user's own rows, so recent ones need no lookup. Nothing removes them from slots.
func TestPulled_PinsSeenLongAgoAreSeen(t *testing.T) {
	table, pulled := memrows.Table{}, new(Pulled)
	table[string(layout.GraphRow(layout.RegisterFollow, "user:a"))] = layout.AppendFollow(nil, 0, 1)
	poolstest.SetState(table, layout.State{Head: 9})
	for n := range 3 {
		d := poolstest.Delivered{Pin: poolstest.PinID(n), Version: 1, PoolScore: schemas.PoolScore(n), PinContent: schemas.PinContent{Facets: schemas.Facets{Author: "user:a"}}}
		pulled.Change("", nil, slot("user:a", n, d, false))
		if n > 0 {
			table[string(rows.Name(layout.KindSeen, d.Pin))] = layout.AppendSeen(nil, layout.Seen{Position: int64(n)})
		}
	}
	v := &view{poolstest.View(t, table), pulled}
	v.RecentlySeen = map[schemas.PinID]struct{}{poolstest.PinID(2): {}}
	all := must.Get(v.best(schemas.Following, 3))(t)
	if len(all) != 1 || all[0].Pin != poolstest.PinID(0) {
		t.Errorf("%d candidates, want only the unseen one: %+v", len(all), all)
	}
}
