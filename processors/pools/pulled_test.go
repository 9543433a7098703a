package pools

import (
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// slot returns the record of the topic recents-pulled for a version.
func slot(followee schemas.Followee, n int, d delivered, gone bool) *schemas.PulledPin {
	return &schemas.PulledPin{Followee: followee, Slot: int32(n), Gone: gone, DeliveredPin: schemas.DeliveredPin{
		Pin: d.pin, Version: d.version, Facets: d.Facets, Created: d.created, Score: d.score, Deleted: d.deleted,
	}}
}

// Some versions are pushed, and some are in slots of followees, which are added, changed and removed. The user does not
// follow all of these followees. The pool equals the oracle of everything that reaches the user, with the content that any
// slot knows of a pin.
func TestPushedAndPulledAreOnePool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for _, followee := range []schemas.ID{"user:a", "board:a"} {
			if weight := rapid.SampledFrom([]float32{1, 2}).Draw(t, "weight"); w.follows(followee) {
				w.graph.follows[followee] = weight
				w.table[string(graphRow(regFollow, followee))] = appendEdgeWeight(weight)
			}
		}
		pulled := new(Pulled)
		var reaches []delivered // including the weight of the edge
		slots := map[string]*schemas.PulledPin{}
		fill := func(s *schemas.PulledPin) {
			key := schemas.PulledKey(s.Followee, s.Slot)
			pulled.Change(key, slots[key], s)
			slots[key] = s
		}
		for i, d := range rapid.Permutation(drawVersions(t, 8)).Draw(t, "order") {
			if rapid.Bool().Draw(t, "pushed") {
				w.table.put(schemas.Following, d)
				reaches = append(reaches, d)
				continue
			}
			followee := rapid.SampledFrom([]schemas.Followee{"user:a", "user:c", "board:a", "interest:x"}).Draw(t, "followee")
			if i%3 == 0 {
				fill(slot(followee, i, delivered{pin: "pin:other", version: 99, score: 99}, false))
			}
			fill(slot(followee, i, d, rapid.IntRange(0, 4).Draw(t, "gone") == 0))
		}
		var known []delivered
		for _, s := range slots {
			d := delivered{pin: s.Pin, version: s.Version, created: s.Created, deleted: s.Deleted, Facets: s.Facets, score: s.Score}
			if weight := w.graph.follows[schemas.ID(s.Followee)]; weight > 0 && !s.Gone && s.Followee.Source() == schemas.Following {
				d.score = score.Weighted(s.Score, weight)
				reaches = append(reaches, d)
			}
			known = append(known, d)
		}
		n := rapid.IntRange(1, 12).Draw(t, "n")
		v := w.table.look(t)
		v.pulled = pulled
		all, err := v.pool(schemas.Following, n)
		if err != nil {
			t.Fatal(err)
		}
		got := []waitingPin{}
		for _, c := range all {
			got = append(got, waitingPin{c.pin, c.score})
		}
		if diff := gocmp.Diff(mergedOracle(reaches, known, w, n), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func (w world) follows(id schemas.ID) bool { _, ok := w.graph.follows[id]; return ok }

// mergedOracle returns the oracle of the versions that reach the user. Each has the content of the highest known version.
// Versions with another creation time than that one are dropped.
func mergedOracle(reaches, known []delivered, w world, n int) []waitingPin {
	truth := map[schemas.PinID]delivered{}
	for _, d := range append(slices.Clone(known), reaches...) {
		if best, ok := truth[d.pin]; !ok || d.version > best.version {
			truth[d.pin] = d
		}
	}
	var all []delivered
	for _, d := range reaches {
		if best := truth[d.pin]; best.created == d.created {
			best.score = d.score
			all = append(all, best)
		}
	}
	return oracle(all, w.visible, w.seen, n)
}

func TestPulledForgetsWhatLeavesItsSlot(t *testing.T) {
	var p Pulled
	pin := func(n int) delivered {
		return delivered{pin: pinID(n), version: 1, score: float64(n % 2)}
	}
	for i := range 10 {
		p.Change("", nil, slot("user:a", i, pin(i), i%5 == 4))
	}
	if got := p.sources(map[schemas.ID]float32{"user:a": 1, "interest:x": 1}, nil); !slices.Equal(got, []schemas.Source{schemas.Following}) {
		t.Errorf("sources %v", got)
	}
	list := slices.Clone(p.lists["user:a"])
	gone := slices.Concat(p.pins[pinID(4)], p.pins[pinID(9)])
	for _, s := range append(list, gone...) {
		p.Change("", s, nil)
	}
	if len(p.lists) != 0 || len(p.pins) != 0 {
		t.Errorf("%d lists and %d pins are left", len(p.lists), len(p.pins))
	}
}

// BenchmarkMerge reads the head of a pool of 500, for a user who follows 20 pulled followees with 1000 pins each.
func BenchmarkMerge(b *testing.B) {
	table, pulled := memory{}, new(Pulled)
	for f := range 20 {
		followee := schemas.Followee(fmt.Sprintf("user:%d", f))
		table[string(graphRow(regFollow, schemas.ID(followee)))] = []byte{}
		for n := range 1000 {
			d := delivered{pin: pinID(f*1000 + n), version: 1, score: float64(n*20 + f), Facets: schemas.Facets{Author: schemas.UserID(followee)}}
			pulled.Change("", nil, slot(followee, n, d, false))
			if n >= 975 {
				table.put(schemas.Following, d)
			}
		}
	}
	v, err := viewOf(table, owner, nobody{}, schemas.Micros(0).Time(), 0, new(scratch))
	if err != nil {
		b.Fatal(err, new(scratch))
	}
	v.pulled = pulled
	for b.Loop() {
		if _, err := v.pool(schemas.Following, 200); err != nil {
			b.Fatal(err)
		}
	}
}

// Trims remove seen pins from the user's own rows, so recent ones need no lookup. Nothing removes them from slots.
func TestPulledPinsThatWereSeenLongAgoAreSeen(t *testing.T) {
	table, pulled := memory{}, new(Pulled)
	table[string(graphRow(regFollow, "user:a"))] = []byte{}
	table[string(rowState)] = []byte(`{"head":9}`)
	for n := range 3 {
		d := delivered{pin: pinID(n), version: 1, score: float64(n), Facets: schemas.Facets{Author: "user:a"}}
		pulled.Change("", nil, slot("user:a", n, d, false))
		if n > 0 {
			table[string(rowOf(rowSeen, d.pin))] = appendSeen(nil, seen{position: int64(n)})
		}
	}
	v := table.look(t)
	v.pulled, v.lately = pulled, map[schemas.PinID]struct{}{pinID(2): {}}
	all, err := v.pool(schemas.Following, 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].pin != pinID(0) {
		t.Errorf("%d candidates, want the one that was not seen: %+v", len(all), all)
	}
}
