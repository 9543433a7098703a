package rules

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

func TestHeldBackNamesWhatIsLeftForLater(t *testing.T) {
	d := newDiary(t, 0, 14, 13)
	weak := func(fate Fate, since schemas.Micros, pins ...schemas.PinID) (list []HeldBack) {
		for _, pin := range pins {
			list = append(list, HeldBack{Pin: pin, Fate: fate, Since: since})
		}
		return list
	}
	expect := func(when string, want []HeldBack) {
		t.Helper()
		if diff := cmp.Diff(want, d.feed.HeldBack(d.visit, d.pools, Known{}), equateEmpty); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	expect("before any visit", weak(Held, 0, "pin:following-011", "pin:following-012", "pin:following-013"))
	began := d.visit.Time
	d.look("strong ones", 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	expect("after it", append(weak(Deferred, began, "pin:following-011", "pin:following-012"), weak(Held, 0, "pin:following-013")...))
	d.visit.Time += micros(2 * time.Minute)
	expect("in the next session, whose best is weaker", nil)
}

// For any pools, HeldBack returns the pins that Explain reports as held back, and none of them is shown.
func TestHeldBackAgreesWithExplain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, pools, k := drawFeed(t), drawPools(t), drawKnown(t)
		f.Shares[schemas.Explore] = 0 // exploration draws from the shown candidates
		v := Visit{User: "user:me", Time: 1e12, Limit: rapid.IntRange(1, 10).Draw(t, "limit")}
		for range 2 {
			held := map[schemas.PinID]Fate{}
			for _, h := range f.HeldBack(v, pools, k) {
				held[h.Pin] = h.Fate
			}
			for _, p := range pools {
				for _, c := range p.Candidates {
					fate := f.Explain(v, pools, k, c.Pin).Fate
					if got := held[c.Pin]; (fate == Held || fate == Deferred) != (got != "") || got != "" && got != fate {
						t.Fatalf("%s is held %q, and its fate is %q", c.Pin, got, fate)
					}
				}
			}
			made := f.Make(v, pools, k)
			v.Memory, pools = made.Memory, without(pools, made.Items)
			v.Time++
		}
	})
}

func TestTargetsAreSharesOfAll(t *testing.T) {
	home := Default()[Home]
	for name, c := range map[string]struct {
		feed    Feed
		sources []schemas.Source
		want    map[schemas.Source]float64
	}{
		"named": {Feed{Shares: map[schemas.Source]float64{"a": 3, "b": 1}, Others: 1}, []schemas.Source{"a"},
			map[schemas.Source]float64{"a": 0.75, "b": 0.25}},
		"and others": {Feed{Shares: map[schemas.Source]float64{"a": 3}, Others: 1}, []schemas.Source{"a", "b"},
			map[schemas.Source]float64{"a": 0.75, "b": 0.25}},
		"nothing": {Feed{}, []schemas.Source{"a"}, map[schemas.Source]float64{"a": 0}},
		"home, with lots": {home, nil, map[schemas.Source]float64{
			"following": 0.6 / 1.05, "interest": 0.3 / 1.05, "related": 0.1 / 1.05, "explore": 0.05 / 1.05}},
	} {
		t.Run(name, func(t *testing.T) {
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
			if diff := cmp.Diff(c.want, c.feed.Targets(c.sources...), near); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
