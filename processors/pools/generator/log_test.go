package generator

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// numbersOf gives each pin and feature a number with many digits. One is missing.
func numbersOf(_ context.Context, _ schemas.UserID, pins []schemas.PinID, names []string) (rows [][]float32, err error) {
	for _, pin := range pins {
		row := make([]float32, len(names))
		for i := range names {
			row[i] = float32(math.Sqrt(float64(len(rows)+2)) / float64(i+3))
		}
		if pin == "pin:1" {
			row[0] = float32(math.NaN())
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// The log has exactly the numbers that the model received and returned, for the items and for the choices.
func TestLog_HasNumbersOfModel(t *testing.T) {
	received, outputs := map[schemas.PinID][]schemas.LoggedNumber{}, map[schemas.PinID][]schemas.LoggedNumber{}
	cfg := withFeatures(t, func(q modelQuestion) any {
		heads := map[string]map[schemas.PinID]float64{"hide": {}, "save": {}}
		for n, c := range q.Candidates {
			received[c.Pin] = []schemas.LoggedNumber{schemas.LoggedNumber(c.Features["clicks"]), schemas.LoggedNumber(c.Features["taste"])}
			heads["hide"][c.Pin] = 1 / float64(n+3)
			outputs[c.Pin] = []schemas.LoggedNumber{schemas.LoggedNumber(heads["hide"][c.Pin]), schemas.LoggedNumber(math.NaN())}
		}
		return map[string]any{"outputs": heads}
	})
	cfg.Model.MaxCandidates = 3
	cfg.VisitLogShare = 1
	changeHome(cfg.Feeds, func(home *rules.Feed) {
		home.Utility = map[string]float64{"save": 1, "hide": 1}
		home.Randomize = rules.Randomize{Candidates: 4, Temperature: 100}
	})
	g := generatorWith(t, cfg, Deps{Rows: newFakePools(4), Features: numbersOf})
	c := must.Get(g.Chunk(t.Context(), schemas.ChunkRequest{Served: "v1", User: poolstest.Owner, Feed: rules.Home, Limit: 4, Time: 1e15}))(t)
	v := c.Served.Logged
	if len(v.Items) != 4 || len(received) != 3 || received["pin:1"][0] != -1 {
		t.Fatalf("%d items of the values %v", len(v.Items), received)
	}
	features := []schemas.LoggedFeature{{Name: "clicks", Width: 1}, {Name: "taste", Width: 1}}
	expect.NoDiff(t, v.Features, features, "features")
	expect.NoDiff(t, v.Outputs, []string{"hide", "save"}, "outputs")
	same := func(name string, want, got []schemas.LoggedNumber) {
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b schemas.LoggedNumber) bool {
			return math.Float64bits(float64(a)) == math.Float64bits(float64(b))
		})); diff != "" {
			t.Errorf("%s (-model +log):\n%s", name, diff)
		}
	}
	for _, it := range v.Items {
		same("values of "+string(it.Pin), received[it.Pin], it.Values)
		same("outputs of "+string(it.Pin), outputs[it.Pin], it.Outputs)
		for _, choice := range it.Choices {
			same("outputs of the choice "+string(choice.Pin), outputs[choice.Pin], choice.Outputs)
		}
	}
}

// The log says that the model did not answer, and has no values then.
func TestLog_WithoutAnswerOfModel(t *testing.T) {
	cfg := withFeatures(t, func(modelQuestion) any { return nil })
	cfg.VisitLogShare = 1
	v := scoredChunk(t, cfg, numbersOf).Served.Logged
	if !slices.Equal(v.Degraded, []string{"model"}) || len(v.Features)+len(v.Outputs)+len(v.Items[0].Values)+len(v.Items[0].Outputs) > 0 {
		t.Errorf("got %+v, want a log without numbers that is degraded", v)
	}
}

// A visit of a user who is not sampled has no log, nor has a peek or a visit without new items.
func TestLog_OnlyOfVisitsOfSampledUsers(t *testing.T) {
	shares := map[schemas.UserID]float64{}
	for n := range 200 {
		user := schemas.UserID(fmt.Sprint("user:", n))
		for _, share := range []float64{0, 0.25, 0.5, 1} {
			cfg := withoutExploration()
			cfg.VisitLogShare = share
			cfg.Feeds["calm"] = cfg.Feeds["plain"]
			changeHome(cfg.Feeds, func(home *rules.Feed) { home.ExperimentArms = []rules.Arm{{Feed: "calm", Share: 0.25}} })
			g := generatorWith(t, cfg, Deps{Rows: newFakePools(3)})
			req := schemas.ChunkRequest{Served: "v1", User: user, Feed: rules.Home, Limit: 2}
			v := must.Get(g.Chunk(t.Context(), req))(t).Served.Logged
			expect.Equal(t, v != nil, schemas.Sampled(string(user), share), "%s is sampled at %v", user, share)
			if share == 0 && v != nil || share == 1 && (v == nil || v.UserShare != 1) {
				t.Fatalf("share %v: %+v", share, v)
			}
			if v != nil {
				shares[user] = v.ArmShare
			}
		}
	}
	if got := slices.Sorted(maps.Values(shares)); len(got) != 200 || got[0] != 0.25 || got[199] != 0.75 {
		t.Errorf("shares of the arms %v, want 0.25 and 0.75", got)
	}
	cfg := withoutExploration()
	cfg.VisitLogShare = 1
	g := generatorWith(t, cfg, Deps{Rows: newFakePools(1)})
	if c := must.Get(peek(t, g, rules.Home))(t); len(c.Served.Items) == 0 || c.Served.Logged != nil {
		t.Errorf("a peek has %d items and the log %v, want no log", len(c.Served.Items), c.Served.Logged)
	}
	expect.NoDiff(t, visit(t, generatorWith(t, cfg, Deps{Rows: newFakePools(0)}), "v2").Served.Logged, nil, "log of an empty visit")
}

// Pins that were shown long ago are not among the choices: the probabilities are those of a choice among unseen pins.
func TestLog_ChoicesAreUnseen(t *testing.T) {
	cfg := withoutExploration()
	cfg.VisitLogShare = 1
	changeHome(cfg.Feeds, func(home *rules.Feed) { home.Randomize = rules.Randomize{Candidates: 5, Temperature: 1} })
	for n := range 20 {
		d := newFakePools(40)
		poolstest.SetState(d.rows, layout.State{Head: 8, Memory: schemas.Memory{Draws: int64(n)}})
		for i := 1; i < 8; i += 2 {
			d.markSeen(poolstest.PinID(i))
		}
		g := generatorWith(t, cfg, Deps{Rows: d})
		for _, it := range homeVisit(t, g, "v1", 2).Served.Logged.Items {
			for i, c := range it.Choices {
				if slices.Contains([]schemas.PinID{"pin:1", "pin:3", "pin:5", "pin:7"}, c.Pin) || len(it.Choices) != 5 {
					t.Fatalf("visit %d: choice %d is the seen %s", n, i, c.Pin)
				}
			}
		}
	}
}

// The largest log fits in a Served with the largest items. It lacks choices, and says of how many items.
func TestLog_FitsRecord(t *testing.T) {
	long := func(kind string, n int) string {
		id := fmt.Sprint(kind, n, "-")
		return id + strings.Repeat("x", schemas.MaxIDBytes-len(id))
	}
	cfg := withFeatures(t, func(q modelQuestion) any {
		heads := map[string]map[schemas.PinID]float64{}
		for _, name := range q.Outputs {
			heads[name] = map[schemas.PinID]float64{}
			for _, c := range q.Candidates {
				heads[name][c.Pin] = 1
			}
		}
		return map[string]any{"outputs": heads}
	})
	cfg.Model.Features, cfg.Model.MaxCandidates = nil, 1000
	for i := range 100 {
		cfg.Model.Features = append(cfg.Model.Features, fmt.Sprintf("%064d", i))
	}
	cfg.VisitLogShare = 1
	changeHome(cfg.Feeds, func(home *rules.Feed) {
		home.Utility = map[string]float64{}
		for i := range 8 {
			home.Utility[fmt.Sprintf("output%064d", i)] = 1
		}
		home.Randomize = rules.Randomize{Candidates: 50, Temperature: 1}
	})
	d := newFakePools(0)
	for n := range 200 {
		f := schemas.Facets{Author: schemas.UserID(long("user:", n))}
		for i := range 14 { // 100 such items are just below maxShownBytes
			f.Interests = append(f.Interests, schemas.InterestID(long("interest:", n*100+i)))
		}
		for _, source := range []schemas.Source{schemas.Source(strings.Repeat("s", schemas.MaxSourceBytes)), schemas.Source(strings.Repeat("t", schemas.MaxSourceBytes))} {
			poolstest.Deliver(d.rows, source, poolstest.Delivered{Pin: schemas.PinID(long("pin:", n)), Version: 1, PoolScore: schemas.PoolScore(n), PinContent: schemas.PinContent{Facets: f}})
		}
	}
	g := generatorWith(t, cfg, Deps{Rows: d, Features: numbersOf})
	c := must.Get(g.Chunk(t.Context(), schemas.ChunkRequest{Served: "v1", User: poolstest.Owner, Feed: rules.Home, Limit: 100, Time: 1e15}))(t)
	v := c.Served.Logged
	if len(c.Served.Items) < 90 || len(v.Items) != len(c.Served.Items) || v.Cut == 0 || int(v.Cut) >= len(v.Items) {
		t.Fatalf("%d items, %d logged, %d without choices", len(c.Served.Items), len(v.Items), v.Cut)
	}
	for i, it := range v.Items {
		if isCut := i >= len(v.Items)-int(v.Cut); isCut != (len(it.Choices) == 0) || isCut != (it.Choice == -1) || it.Propensity == 0 || len(it.Values) != 100 || len(it.Outputs) != 8 {
			t.Fatalf("item %d, of which the last %d are cut: %d choices, %d values, propensity %v", i, v.Cut, len(it.Choices), len(it.Values), it.Propensity)
		}
	}
	s := c.Served
	for n := range rules.MaxDeferred {
		s.Deferred = append(s.Deferred, schemas.Deferred{Pin: schemas.PinID(long("pin:", n)), Since: 1})
		s.Expired = append(s.Expired, schemas.PinID(long("pin:", n)))
	}
	serde := must.Get(schemas.NewSerde[schemas.Served](topics.Served, 1, registry{}))(t)
	value := must.Get(serde.Encode(&s))(t)
	for i := range v.Items {
		v.Items[i].Choices = nil
	}
	expect.Between(t, len(value)-len(must.Get(serde.Encode(&s))(t)), maxChoiceBytes*3/4, maxChoiceBytes, "bytes of the choices")
}

// A peek, why and a visit agree if places are drawn.
func TestRandomize_PeekHasItemsOfNextVisit(t *testing.T) {
	cfg := withoutExploration()
	changeHome(cfg.Feeds, func(home *rules.Feed) { home.Randomize = rules.Randomize{Candidates: 10, Temperature: 10} })
	d := newFakePools(40)
	g := generatorWith(t, cfg, Deps{Rows: d})
	orders := map[string]bool{}
	for n := range 4 {
		peeked := must.Get(peek(t, g, rules.Home))(t)
		served := fmt.Sprint("v", n)
		c := homeVisit(t, g, served, 3)
		expect.NoDiff(t, peeked.Served.Items, c.Served.Items, "visit %d (-visit +peek)", n)
		g.Settle(poolstest.Owner, served, schemas.Failed) // the same pins wait, and the draws are the same
		again := homeVisit(t, g, served+"b", 3)
		expect.NoDiffBut(t, cmpopts.IgnoreFields(schemas.Served{}, "ID"), again.Served, c.Served, "repeated visit %d (-first +second)", n)
		d.apply(t, &again.Served)
		g.Settle(poolstest.Owner, again.Served.ID, schemas.Acknowledged)
		orders[fmt.Sprint(pinsOf(c.Served.Items))] = true
	}
	expect.False(t, orders["[pin:0 pin:1 pin:2]"] && orders["[pin:3 pin:4 pin:5]"], "visits %v: all are in the order of the scores", orders)
}
