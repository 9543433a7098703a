package rules

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// drawPopular draws a pool of the source popular. Some of its pins are in other pools, too.
func drawPopular(t *rapid.T) Pool {
	p := Pool{Source: schemas.FromPopular}
	for i, n := range rapid.SliceOfNDistinct(rapid.IntRange(60, 120), 0, 40, rapid.ID[int]).Draw(t, "popular") {
		p.Candidates = append(p.Candidates, Candidate{
			Pin: schemas.PinID(fmt.Sprintf("pin:%d", n)), PoolScore: schemas.PoolScore(1000 - i), Created: schemas.Micros(n), Facets: facetsOf(n),
		})
	}
	return p
}

// A pin that is deferred in a source with a share is not shown as a popular one.
func TestMake_DeferredPinIsNotShownAsPopular(t *testing.T) {
	f := Feed{
		Shares: map[schemas.Source]float64{schemas.Following: 1}, ShareWindow: 100, Fill: []schemas.Source{schemas.FromPopular},
		Defer: Defer{Margin: 1, SessionTimeout: time.Hour, Expiry: time.Hour},
	}
	pools := []Pool{
		{Source: schemas.Following, Candidates: []Candidate{{Pin: "pin:strong", PoolScore: 10}, {Pin: "pin:weak", PoolScore: 5}}},
		{Source: schemas.FromPopular, Candidates: []Candidate{{Pin: "pin:weak", PoolScore: 2}, {Pin: "pin:other", PoolScore: 1}}},
	}
	var got []schemas.PinID
	for _, it := range f.Make(Visit{User: "user:me", Time: 1e12, Limit: 4}, pools, Signals{}).Items {
		got = append(got, it.Pin)
	}
	expect.NoDiff(t, got, []schemas.PinID{"pin:strong", "pin:other"}, "pins")
}

// A full chunk is the same with and without popular pins. A short one has them after its other items, in order, each pin once, and
// is full if there are enough. The memory defers the same candidates.
func TestMake_FillsOnlyPlacesLeftOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, pools, k := drawFeed(t), drawPools(t), drawSignals(t)
		delete(f.Shares, schemas.FromPopular)
		v := Visit{User: "user:me", Time: 1e12, Limit: rapid.IntRange(1, 60).Draw(t, "limit")}
		without := f.Make(v, pools, k)
		f.Fill = []schemas.Source{schemas.FromPopular}
		popular := drawPopular(t)
		got := f.Make(v, append(slices.Clone(pools), popular), k)

		must.AtLeast(t, len(got.Items), len(without.Items), "items")
		expect.NoDiffBut(t, equateEmpty, got.Items[:len(without.Items)], without.Items, "items of the shares (-without +with popular pins)")
		expect.NoDiffBut(t, equateEmpty, got.Memory.Deferred, without.Memory.Deferred, "deferred (-without +with popular pins)")
		if len(without.Items) == v.Limit {
			expect.NoDiffBut(t, equateEmpty, got, without, "a full chunk (-without +with popular pins)")
		}
		withheld := map[schemas.PinID]bool{}
		for _, w := range f.DeferredCandidates(v, pools, k) {
			withheld[w.Pin] = true
		}
		want := map[schemas.PinID]bool{}
		for _, c := range popular.Candidates {
			want[c.Pin] = !withheld[c.Pin]
		}
		maps.DeleteFunc(want, func(_ schemas.PinID, shown bool) bool { return !shown })
		last := map[schemas.Source]schemas.RankScore{}
		shown := map[schemas.PinID]bool{}
		for i, it := range got.Items {
			if shown[it.Pin] || i >= len(without.Items) && !want[it.Pin] {
				t.Fatalf("%s in place %d is repeated or is no candidate", it.Pin, i)
			}
			if before, ok := last[it.Source]; ok && it.RankScore > before && !f.randomizes() {
				t.Fatalf("%s in place %d has score %v after %v of %s", it.Pin, i, it.RankScore, before, it.Source)
			}
			last[it.Source], shown[it.Pin] = it.RankScore, true
			delete(want, it.Pin)
		}
		if len(got.Items) < v.Limit && len(want) > 0 {
			t.Fatalf("%d of %d places are filled, and %v wait", len(got.Items), v.Limit, want)
		}
	})
}

// A weak candidate is deferred because the shares leave a place over, although a popular pin fills that place.
func TestMake_FilledPlacesDoNotPreventDeferral(t *testing.T) {
	f := Feed{
		DefaultShare: 1, ShareWindow: 100, Fill: []schemas.Source{schemas.FromPopular},
		Defer: Defer{Margin: 1, SessionTimeout: time.Minute, Expiry: time.Hour},
	}
	pools := []Pool{
		{Source: schemas.Following, Candidates: []Candidate{{Pin: "pin:strong", PoolScore: 10}, {Pin: "pin:weak"}}},
		{Source: schemas.FromPopular, Candidates: []Candidate{{Pin: "pin:popular"}}},
	}
	c := f.Make(Visit{User: "user:me", Time: 1e12, Limit: 2}, pools, Signals{})
	if len(c.Items) != 2 || len(c.Memory.Deferred) != 1 || c.Memory.Deferred[0].Pin != "pin:weak" {
		t.Errorf("got %v and deferred %v, want two items, and pin:weak deferred", c.Items, c.Memory.Deferred)
	}
}

// A user without candidates sees popular pins within the caps, and exploration has its share of them.
func TestMake_FillsFeedOfNewUser(t *testing.T) {
	home := Default()[Home]
	popular := Pool{Source: schemas.FromPopular}
	for i := range 200 {
		popular.Candidates = append(popular.Candidates, Candidate{
			Pin: schemas.PinID(fmt.Sprintf("pin:%03d", i)), PoolScore: schemas.PoolScore(-i),
			Facets: schemas.Facets{Author: schemas.UserID(fmt.Sprintf("user:%d", i/4))},
		})
	}
	v := Visit{User: "user:me", Time: 1e12, Limit: 100}
	c := home.Make(v, []Pool{popular}, Signals{Counts: countsOf{}})
	sources := map[schemas.Source]int{}
	for _, it := range c.Items {
		sources[it.Source]++
	}
	if explored := sources[schemas.Explore]; len(c.Items) != 100 || explored < 3 || explored > 8 || sources[schemas.FromPopular] != 100-explored || c.Relaxed != NotRelaxed {
		t.Errorf("got %v, relaxed %q, want 100 popular pins, about 5 of them explored, within the caps", sources, c.Relaxed)
	}
	for i := range c.Items {
		n := 0
		for _, it := range c.Items[max(0, i-9) : i+1] {
			if it.Author == c.Items[i].Author {
				n++
			}
		}
		expect.AtMost(t, n, home.Caps.Author, "place %d: items of %s within ten", i, c.Items[i].Author)
	}
	plain := Default()["plain"]
	expect.Equal(t, len(plain.Make(v, []Pool{popular}, Signals{}).Items), 0, "popular pins in plain")
	plain.Shares[schemas.FromPopular] = 1
	expect.Equal(t, len(plain.Make(v, []Pool{popular}, Signals{}).Items), 100, "popular pins that plain shows with a share")
}

func TestExplain_PopularPin(t *testing.T) {
	f := Feed{DefaultShare: 1, ShareWindow: 100, Fill: []schemas.Source{schemas.FromPopular}}
	pools := []Pool{
		{Source: "s", Candidates: []Candidate{{Pin: "pin:1"}}},
		{Source: schemas.FromPopular, Candidates: []Candidate{{Pin: "pin:2"}, {Pin: "pin:3", PoolScore: -1}}},
	}
	for limit, want := range map[int]schemas.Reason{1: schemas.ReasonOutranked, 2: "", 3: ""} {
		e := f.Explain(Visit{User: "user:me", Limit: limit}, pools, Signals{}, "pin:2")
		if e.Reason != want || len(e.Scores) != 1 || e.Scores[0].Source != schemas.FromPopular {
			t.Errorf("limit %d: got %+v, want the reason %q and its score", limit, e, want)
		}
	}
}

func TestValidate_FillSources(t *testing.T) {
	for name, c := range map[string]struct {
		fill []schemas.Source
		bad  bool
	}{
		"popular":        {[]schemas.Source{schemas.FromPopular}, false},
		"two":            {[]schemas.Source{schemas.FromPopular, "editors"}, false},
		"twice":          {[]schemas.Source{schemas.FromPopular, schemas.FromPopular}, true},
		"with a share":   {[]schemas.Source{schemas.Following}, true},
		"exploration":    {[]schemas.Source{schemas.Explore}, true},
		"without a name": {[]schemas.Source{""}, true},
	} {
		feeds := Default()
		home := feeds[Home]
		home.Fill = c.fill
		feeds[Home] = home
		expect.Equal(t, feeds.Validate() != nil, c.bad, "%s: an error", name)
	}
}

// The propensity of an explored popular pin counts the pins that the caps of its place admit. The caps of the places above were
// relaxed.
func TestLogged_EstimatesPropensityOfExploredPopularPins(t *testing.T) {
	f := exploring()
	f.Fill, f.Caps = []schemas.Source{schemas.FromPopular}, Caps{Window: 10, Author: 1}
	by := func(author schemas.UserID, pins ...schemas.PinID) []Candidate {
		return convert.All(pins, func(pin schemas.PinID) Candidate { return Candidate{Pin: pin, Facets: schemas.Facets{Author: author}} })
	}
	known := Count{Impressions: 100}
	counts := countsOf{"user:a": {Impressions: 100, Saves: 50}, "pin:1": known, "pin:2": known, "pin:3": known}
	pools := []Pool{
		{Source: "s", Candidates: by("user:a", "pin:1", "pin:2", "pin:3")},
		{Source: schemas.FromPopular, Candidates: append(by("user:a", "pin:capped"), append(by("user:b", "pin:b"), by("user:c", "pin:c")...)...)},
	}
	shown, estimates := map[schemas.PinID]float64{}, map[schemas.PinID]float64{}
	const visits = 400
	for n := range visits {
		v := Visit{User: "user:me", Limit: 5, Memory: schemas.Memory{Draws: int64(n)}}
		it := f.Logged(v, pools, Signals{Counts: counts}).Items[3]
		must.Equal(t, it.Source, schemas.Explore, "source of place 4")
		shown[it.Pin]++
		estimates[it.Pin] += it.Propensity
	}
	for _, pin := range []schemas.PinID{"pin:b", "pin:c"} {
		expect.Near(t, estimates[pin]/shown[pin], shown[pin]/visits, 0.08, "%s: mean estimate, compared with the frequency", pin)
	}
}
