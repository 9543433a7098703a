package rules

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// deferring returns a feed with a margin of 10 below the best score. Of poolOf, whose scores are 0, -1, -2 …, eleven are
// strong.
func deferring(budget int) Feed {
	return Feed{Others: 1, Memory: 100, Defer: Defer{Margin: 10, Budget: budget, Session: time.Minute, Expiry: time.Hour}}
}

// diary is a user who visits, with pools that become empty.
type diary struct {
	t     *testing.T
	feed  Feed
	pools []Pool
	visit Visit
}

// look visits after a while and expects the given pins of the source.
func (d *diary) look(when string, after time.Duration, want ...int) Chunk {
	d.t.Helper()
	d.visit.Time += micros(after)
	c := d.feed.Make(d.visit, d.pools, Signals{})
	var pins []schemas.PinID
	for _, n := range want {
		pins = append(pins, schemas.PinID(fmt.Sprintf("pin:%s-%03d", schemas.Following, n)))
	}
	if diff := cmp.Diff(pins, pinsOf(c.Items), equateEmpty); diff != "" {
		d.t.Errorf("%s (-want +got):\n%s", when, diff)
	}
	d.visit.Memory, d.pools = c.Memory, without(d.pools, c.Items)
	return c
}

func (d *diary) deferred(want ...int) {
	d.t.Helper()
	var got []int
	for _, def := range d.visit.Memory.Deferred {
		var n int
		if _, err := fmt.Sscanf(string(def.Pin), "pin:following-%d", &n); err != nil {
			d.t.Fatal(err)
		}
		got = append(got, n)
	}
	if diff := cmp.Diff(want, got, equateEmpty); diff != "" {
		d.t.Errorf("deferred (-want +got):\n%s", diff)
	}
}

func (d *diary) fate(n int) Fate {
	pin := schemas.PinID(fmt.Sprintf("pin:%s-%03d", schemas.Following, n))
	return d.feed.Explain(d.visit, d.pools, Signals{}, pin).Fate
}

func newDiary(t *testing.T, budget, pins, limit int) *diary {
	return &diary{t: t, feed: deferring(budget), pools: []Pool{poolOf(schemas.Following, pins)}, visit: Visit{User: "user:me", Time: 1e12, Limit: limit}}
}

func TestWeakItemsAreDeferredAndComeBack(t *testing.T) {
	d := newDiary(t, 2, 20, 8)
	d.look("strong ones", 0, 0, 1, 2, 3, 4, 5, 6, 7)
	d.deferred() // the chunk was full
	d.look("the rest of them, and the budget", time.Second, 8, 9, 10, 11, 12)
	d.deferred(13, 14, 15) // three places were left empty
	for n, want := range map[int]Fate{13: Deferred, 16: Held, 99: NoShare} {
		if got := d.fate(n); got != want {
			t.Errorf("pin %d is %q, want %q", n, got, want)
		}
	}
	if n := len(d.feed.Waiting(d.visit, d.pools, Signals{})); n != 0 {
		t.Errorf("%d wait in the session, want none", n)
	}
	d.look("the budget is spent", 59*time.Second)
	d.visit.Time += micros(2 * time.Minute)
	if n := len(d.feed.Waiting(d.visit, d.pools, Signals{})); n != 7 {
		t.Errorf("%d wait in the next session, want 7", n)
	}
	d.look("a new session, whose best is weaker", 0, 13, 14, 15, 16, 17, 18, 19)
	d.deferred()
}

// A deferred pin is not weak when it returns, however much better another pin is by then.
func TestWhatComesBackIsNotWeak(t *testing.T) {
	d := newDiary(t, 0, 13, 13)
	d.look("strong ones", 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	d.deferred(11, 12)
	best := Candidate{Pin: "pin:following-100", PoolScore: 1000}
	weak := Candidate{Pin: "pin:following-200", PoolScore: -100}
	d.pools[0].Candidates = append([]Candidate{best}, append(d.pools[0].Candidates, weak)...)
	d.look("a later session", 2*time.Minute, 100, 11, 12)
	d.deferred(200)
}

func TestDeferredItemsExpire(t *testing.T) {
	d := newDiary(t, 0, 13, 13)
	d.look("strong ones", 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	d.deferred(11, 12)
	d.pools = append(d.pools, poolOf("editors", 1))
	d.visit.Time += micros(time.Hour + 1000)
	if got := d.fate(11); got != DeferralExpired {
		t.Errorf("pin 11 is %q, want %q", got, DeferralExpired)
	}
	if n := len(d.feed.Waiting(d.visit, d.pools, Signals{})); n != 1 {
		t.Errorf("%d wait, want the one of the editors", n)
	}
	c := d.feed.Make(d.visit, d.pools, Signals{})
	if diff := cmp.Diff([]schemas.PinID{"pin:following-011", "pin:following-012"}, c.Expired); diff != "" {
		t.Errorf("expired (-want +got):\n%s", diff)
	}
	if len(c.Items) != 1 || len(c.Memory.Deferred) != 0 {
		t.Errorf("items %v, deferred %v", c.Items, c.Memory.Deferred)
	}
	d.visit.Memory = c.Memory
	if c := d.feed.Make(d.visit, d.pools, Signals{}); len(c.Expired) != 0 {
		t.Errorf("expired again: %v", c.Expired)
	}
}

// Only write-time scores have a threshold, and a pin that is strong in one source is strong.
func TestHold_IgnoresUngradedSources(t *testing.T) {
	d := newDiary(t, 0, 1, 50)
	far := poolOf("editors", 40)
	both := Candidate{Pin: "pin:both", PoolScore: -50}
	d.pools[0].Candidates = append(d.pools[0].Candidates, both)
	d.pools = append(d.pools, far, Pool{Source: schemas.FromInterest, Candidates: []Candidate{both}})
	if n := len(d.feed.Waiting(d.visit, d.pools, Signals{})); n != 42 {
		t.Errorf("%d wait, want all 42", n)
	}
}

func TestDeferredListIsBounded(t *testing.T) {
	d := newDiary(t, 0, 1000, 100)
	d.look("strong ones", 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	for range 5 {
		c := d.feed.Make(d.visit, d.pools, Signals{})
		d.visit.Memory = c.Memory
	}
	if n := len(d.visit.Memory.Deferred); n != MaxDeferred {
		t.Errorf("%d deferred, want %d", n, MaxDeferred)
	}
}

// Over any visits: a session shows at most Budget weak items and shows nothing that it deferred. Every candidate is shown at
// last unless it expired, which happens only after Expiry.
func TestDeferralOverManyVisits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := deferring(rapid.IntRange(0, 5).Draw(t, "budget"))
		pools := []Pool{poolOf(schemas.Following, rapid.IntRange(0, 60).Draw(t, "pins")), poolOf("editors", 3)}
		total := len(pools[0].Candidates) + len(pools[1].Candidates)
		shown, expired := map[schemas.PinID]bool{}, map[schemas.PinID]bool{}
		v := Visit{User: "user:me", Time: 1e12}
		for i := range 60 {
			v.Limit = rapid.IntRange(1, 30).Draw(t, "limit")
			c := f.Make(v, pools, Signals{})
			since := map[schemas.PinID]schemas.Micros{}
			for _, d := range v.Memory.Deferred {
				since[d.Pin] = d.Since
			}
			for _, it := range c.Items {
				if at, ok := since[it.Pin]; shown[it.Pin] || expired[it.Pin] || ok && at >= c.Memory.Began {
					t.Fatalf("visit %d: %s: shown before, given up, or deferred in this session", i, it.Pin)
				}
				shown[it.Pin] = true
			}
			for _, pin := range c.Expired {
				if at, ok := since[pin]; !ok || v.Time-at <= micros(f.Defer.Expiry) {
					t.Fatalf("visit %d: %s given up, deferred at %d", i, pin, at)
				}
				expired[pin] = true
			}
			if c.Memory.Weak > int64(f.Defer.Budget) {
				t.Fatalf("visit %d: %d weak ones in a session, want %d at most", i, c.Memory.Weak, f.Defer.Budget)
			}
			pools = without(pools, c.Items)
			for i := range pools { // as pools does with expired candidates
				gone := []schemas.ServedItem{}
				for pin := range expired {
					gone = append(gone, schemas.ServedItem{Pin: pin})
				}
				pools[i] = without(pools[i:i+1], gone)[0]
			}
			v.Memory = c.Memory
			v.Time += micros(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Minute, 2 * time.Hour}).Draw(t, "pause"))
		}
		for range total { // enough sessions to show all
			v.Time += micros(2 * time.Minute)
			v.Limit = 100
			c := f.Make(v, pools, Signals{})
			for _, it := range c.Items {
				shown[it.Pin] = true
			}
			v.Memory, pools = c.Memory, without(pools, c.Items)
		}
		if len(shown)+len(expired) != total {
			t.Fatalf("%d shown and %d given up of %d", len(shown), len(expired), total)
		}
	})
}

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
		if diff := cmp.Diff(want, d.feed.HeldBack(d.visit, d.pools, Signals{}), equateEmpty); diff != "" {
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
		f, pools, k := drawFeed(t), drawPools(t), drawSignals(t)
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
