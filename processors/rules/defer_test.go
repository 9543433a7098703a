package rules

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// deferring returns a feed with a margin of 10 below the best score. poolOf gives the scores 0, -1, -2 …, so eleven of its
// candidates are strong.
func deferring(budget int) Feed {
	return Feed{DefaultShare: 1, ShareWindow: 100, Defer: Defer{Margin: 10, Budget: budget, SessionTimeout: time.Minute, Expiry: time.Hour}}
}

// session is a user who visits a feed repeatedly, with pools that become empty.
type session struct {
	t     *testing.T
	feed  Feed
	pools []Pool
	visit Visit
}

// visitAfter visits after a pause and expects the given pins of the source.
func (s *session) visitAfter(when string, after time.Duration, want ...int) Chunk {
	s.t.Helper()
	s.visit.Time += schemas.MicrosIn(after)
	c := s.feed.Make(s.visit, s.pools, Signals{})
	pins := convert.All(want, func(n int) schemas.PinID { return schemas.PinID(fmt.Sprintf("pin:%s-%03d", schemas.Following, n)) })
	expect.NoDiffBut(s.t, equateEmpty, pinsOf(c.Items), pins, "%s", when)
	s.visit.Memory, s.pools = c.Memory, without(s.pools, c.Items)
	return c
}

func (s *session) deferred(want ...int) {
	s.t.Helper()
	var got []int
	for _, def := range s.visit.Memory.Deferred {
		var n int
		must.Get(fmt.Sscanf(string(def.Pin), "pin:following-%d", &n))(s.t)
		got = append(got, n)
	}
	expect.NoDiffBut(s.t, equateEmpty, got, want, "deferred")
}

func (s *session) reason(n int) schemas.Reason {
	pin := schemas.PinID(fmt.Sprintf("pin:%s-%03d", schemas.Following, n))
	return s.feed.Explain(s.visit, s.pools, Signals{}, pin).Reason
}

func newSession(t *testing.T, budget, pins, limit int) *session {
	return &session{t: t, feed: deferring(budget), pools: []Pool{poolOf(schemas.Following, pins)}, visit: Visit{User: "user:me", Time: 1e12, Limit: limit}}
}

func TestDeferWeak_DefersWeakItemsToNextSession(t *testing.T) {
	s := newSession(t, 2, 20, 8)
	s.visitAfter("strong items", 0, 0, 1, 2, 3, 4, 5, 6, 7)
	s.deferred() // the chunk was full
	s.visitAfter("remaining strong items, then the budget", time.Second, 8, 9, 10, 11, 12)
	s.deferred(13, 14, 15) // three places were empty
	for n, want := range map[int]schemas.Reason{13: schemas.ReasonDeferredEarlier, 16: schemas.ReasonWeak, 99: schemas.ReasonNoShare} {
		expect.NoDiff(t, s.reason(n), want, "pin %d is", n)
	}
	expect.Equal(t, len(s.feed.Waiting(s.visit, s.pools, Signals{})), 0, "pins that wait in the session")
	s.visitAfter("budget spent", 59*time.Second)
	s.visit.Time += schemas.MicrosIn(2 * time.Minute)
	expect.Equal(t, len(s.feed.Waiting(s.visit, s.pools, Signals{})), 7, "pins that wait in the next session")
	s.visitAfter("a new session with a weaker best score", 0, 13, 14, 15, 16, 17, 18, 19)
	s.deferred()
}

// A deferred pin is not weak when it returns, even if another pin has a much higher score by then.
func TestDeferWeak_DeferredPinIsNotWeakLater(t *testing.T) {
	s := newSession(t, 0, 13, 13)
	s.visitAfter("strong items", 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	s.deferred(11, 12)
	best := Candidate{Pin: "pin:following-100", PoolScore: 1000}
	weak := Candidate{Pin: "pin:following-200", PoolScore: -100}
	s.pools[0].Candidates = append([]Candidate{best}, append(s.pools[0].Candidates, weak)...)
	s.visitAfter("a later session", 2*time.Minute, 100, 11, 12)
	s.deferred(200)
}

func TestDeferWeak_DeferredItemsExpire(t *testing.T) {
	s := newSession(t, 0, 13, 13)
	s.visitAfter("strong items", 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	s.deferred(11, 12)
	s.pools = append(s.pools, poolOf("editors", 1))
	s.visit.Time += schemas.MicrosIn(time.Hour + 1000)
	expect.NoDiff(t, s.reason(11), schemas.ReasonDeferralExpired, "pin 11")
	expect.Equal(t, len(s.feed.Waiting(s.visit, s.pools, Signals{})), 1, "pins that wait: only that of the editors")
	c := s.feed.Make(s.visit, s.pools, Signals{})
	expect.NoDiff(t, c.Expired, []schemas.PinID{"pin:following-011", "pin:following-012"}, "expired")
	expect.Equal(t, [2]int{len(c.Items), len(c.Memory.Deferred)}, [2]int{1, 0}, "items and deferred items")
	s.visit.Memory = c.Memory
	expect.Equal(t, len(s.feed.Make(s.visit, s.pools, Signals{}).Expired), 0, "expired again")
}

// Only write-time scores have a threshold, and a pin that is strong in one source is strong.
func TestDeferWeak_IgnoresUngradedSources(t *testing.T) {
	s := newSession(t, 0, 1, 50)
	far := poolOf("editors", 40)
	both := Candidate{Pin: "pin:both", PoolScore: -50}
	s.pools[0].Candidates = append(s.pools[0].Candidates, both)
	s.pools = append(s.pools, far, Pool{Source: schemas.FromInterest, Candidates: []Candidate{both}})
	expect.Equal(t, len(s.feed.Waiting(s.visit, s.pools, Signals{})), 42, "pins that wait")
}

func TestDeferWeak_LimitsDeferredItems(t *testing.T) {
	s := newSession(t, 0, 1000, 100)
	s.visitAfter("strong items", 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	for range 5 {
		c := s.feed.Make(s.visit, s.pools, Signals{})
		s.visit.Memory = c.Memory
	}
	expect.Equal(t, len(s.visit.Memory.Deferred), MaxDeferred, "deferred")
}

// Over any visits: a session shows at most Budget weak items and shows nothing that it deferred. Every candidate is
// shown eventually unless it expired, which happens only after Expiry.
func TestDeferWeak_ShowsOrExpiresEveryCandidate(t *testing.T) {
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
					t.Fatalf("visit %d: %s: already shown, expired, or deferred in this session", i, it.Pin)
				}
				shown[it.Pin] = true
			}
			for _, pin := range c.Expired {
				if at, ok := since[pin]; !ok || v.Time-at <= schemas.MicrosIn(f.Defer.Expiry) {
					t.Fatalf("visit %d: %s expired early, deferred at %d", i, pin, at)
				}
				expired[pin] = true
			}
			expect.AtMost(t, c.Memory.Weak, int64(f.Defer.Budget), "visit %d: weak items in a session", i)
			pools = without(pools, c.Items)
			for i := range pools { // as pools does with expired candidates
				gone := []schemas.ServedItem{}
				for pin := range expired {
					gone = append(gone, schemas.ServedItem{Pin: pin})
				}
				pools[i] = without(pools[i:i+1], gone)[0]
			}
			v.Memory = c.Memory
			v.Time += schemas.MicrosIn(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Minute, 2 * time.Hour}).Draw(t, "pause"))
		}
		for range total { // enough sessions to show all
			v.Time += schemas.MicrosIn(2 * time.Minute)
			v.Limit = 100
			c := f.Make(v, pools, Signals{})
			for _, it := range c.Items {
				shown[it.Pin] = true
			}
			v.Memory, pools = c.Memory, without(pools, c.Items)
		}
		expect.Equal(t, len(shown)+len(expired), total, "items shown and expired")
	})
}

func TestDeferredCandidates_ListsDeferredThenWeak(t *testing.T) {
	s := newSession(t, 0, 14, 13)
	weak := func(reason schemas.Reason, since schemas.Micros, pins ...schemas.PinID) []schemas.DeferredCandidate {
		return convert.All(pins, func(pin schemas.PinID) schemas.DeferredCandidate {
			return schemas.DeferredCandidate{Pin: pin, Reason: reason, Since: schemas.Timestamp(since)}
		})
	}
	expect := func(when string, want []schemas.DeferredCandidate) {
		t.Helper()
		expect.NoDiffBut(t, equateEmpty, s.feed.DeferredCandidates(s.visit, s.pools, Signals{}), want, "%s", when)
	}
	expect("before any visit", weak(schemas.ReasonWeak, 0, "pin:following-011", "pin:following-012", "pin:following-013"))
	began := s.visit.Time
	s.visitAfter("strong items", 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	expect("after a visit", append(
		weak(schemas.ReasonDeferredEarlier, began, "pin:following-011", "pin:following-012"), weak(schemas.ReasonWeak, 0, "pin:following-013")...))
	s.visit.Time += schemas.MicrosIn(2 * time.Minute)
	expect("in the next session, with a weaker best score", nil)
}

// For any pools, DeferredCandidates returns the pins that Explain reports as weak or deferred, and none of them is shown.
func TestDeferredCandidates_AgreesWithExplain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, pools, k := drawFeed(t), drawPools(t), drawSignals(t)
		f.Shares[schemas.Explore] = 0 // exploration draws from the shown candidates
		v := Visit{User: "user:me", Time: 1e12, Limit: rapid.IntRange(1, 10).Draw(t, "limit")}
		for range 2 {
			listed := map[schemas.PinID]schemas.Reason{}
			for _, h := range f.DeferredCandidates(v, pools, k) {
				listed[h.Pin] = h.Reason
			}
			for _, p := range pools {
				for _, c := range p.Candidates {
					e := f.Explain(v, pools, k, c.Pin)
					if got := listed[c.Pin]; (e.Fate == schemas.FateDeferred) != (got != "") || got != "" && got != e.Reason {
						t.Fatalf("%s is listed as %q, and explained as %+v", c.Pin, got, e)
					}
				}
			}
			made := f.Make(v, pools, k)
			v.Memory, pools = made.Memory, without(pools, made.Items)
			v.Time++
		}
	})
}
