package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/metrics"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

// clock is a clock that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time      { return c.at }
func (c *clock) add(d time.Duration) { c.at = c.at.Add(d) }

// admitted reports whether a request is admitted.
func admitted(_ time.Duration, ok bool) bool { return ok }

func TestCallers_Rate(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	cfg := DefaultConfig()
	cfg.UserRate, cfg.UserBurst = 10, 3
	callers := NewCallers(cfg, c.now)
	for range cfg.UserBurst {
		expect.True(t, admitted(callers.User("user:a")), "a request within the burst is admitted")
	}
	for range 5 { // a rejected request costs nothing
		if again, ok := callers.User("user:a"); ok || again != 100*time.Millisecond {
			t.Fatalf("got %v, %v, want a retry in 100ms", ok, again)
		}
	}
	expect.True(t, admitted(callers.User("user:b")), "another user is admitted")
	expect.True(t, admitted(callers.Service("user:a")), "a service with the name of the user is admitted")
	c.add(100 * time.Millisecond)
	expect.True(t, admitted(callers.User("user:a")), "a request after the retry time is admitted")
}

// In any sequence of requests, a caller gets at most the burst plus its rate.
func TestCallers_RateHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.UserRate, cfg.UserBurst = float64(rapid.IntRange(1, 1000).Draw(t, "rate")), rapid.IntRange(1, 50).Draw(t, "burst")
		c := &clock{time.Unix(1e9, 0)}
		callers := NewCallers(cfg, c.now)
		began, let := c.at, 0
		for _, ms := range rapid.SliceOfN(rapid.IntRange(0, 100), 1, 300).Draw(t, "pauses") {
			c.add(time.Duration(ms) * time.Millisecond)
			if _, ok := callers.User("user:a"); ok {
				let++
			}
			if most := float64(cfg.UserBurst) + cfg.UserRate*c.at.Sub(began).Seconds(); float64(let) > most+1e-6 {
				t.Fatalf("admitted %d requests, want at most %v", let, most)
			}
		}
	})
}

func TestAddressOf(t *testing.T) {
	for _, c := range []struct {
		first, second string
		same          bool
	}{
		{"192.0.2.1:1", "192.0.2.1:2", true},
		{"192.0.2.1:1", "192.0.2.2:1", false},
		{"192.0.2.1:1", "[::ffff:192.0.2.1]:1", true},
		{"[2001:db8::1]:1", "[2001:db8::ffff:1]:1", true},
		{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		{"@", "@", true},
	} {
		cfg := DefaultConfig()
		cfg.UserBurst = 1
		callers := NewCallers(cfg, (&clock{time.Unix(1e9, 0)}).now)
		callers.Address(c.first)
		expect.Equal(t, !admitted(callers.Address(c.second)), c.same, "%s and %s are one caller", c.first, c.second)
	}
	callers := NewCallers(DefaultConfig(), (&clock{time.Unix(1e9, 0)}).now)
	for range 1000 {
		if _, ok := callers.Address("127.0.0.1:1"); !ok {
			t.Fatal("a loopback address is limited")
		}
	}
}

// The number of remembered callers is bounded, and the most recent ones are kept.
func TestCallers_EvictsLeastRecent(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxCallers, cfg.UserBurst = 100, 1
	callers := NewCallers(cfg, (&clock{time.Unix(1e9, 0)}).now)
	callers.User("user:first")
	for i := range 10_000 {
		callers.User(fmt.Sprint("user:", i))
		if i < 50 {
			callers.User("user:first")
		}
	}
	expect.Equal(t, [2]int{len(callers.elements), callers.order.Len()}, [2]int{100, 100}, "elements and callers")
	expect.False(t, admitted(callers.User("user:9999")), "the most recent caller is evicted")
	expect.True(t, admitted(callers.User("user:first")), "the least recent caller is evicted")
}

// machine returns fixed waiting times of goroutines.
type machine struct{ wait time.Duration }

func (m *machine) waits() (time.Duration, uint64) { return m.wait, 1000 }

func TestGates_FollowLoad(t *testing.T) {
	c, m := &clock{time.Unix(1e9, 0)}, &machine{}
	g := NewGates(DefaultConfig(), 512, nil, m.waits, c.now)
	fill := func() (n int) {
		for g.Enter("feed") {
			n++
		}
		for range n {
			g.Leave("feed")
		}
		return n
	}
	expect.Equal(t, fill(), 512, "slots initially")
	m.wait = 10 * time.Millisecond
	g.Enter("operate")
	var bounds []int
	for range 20 {
		c.add(every)
		bounds = append(bounds, fill())
	}
	if bounds[0] != 409 || bounds[1] != 327 || bounds[19] != DefaultConfig().MinConcurrency {
		t.Errorf("overloaded: got %v, want a fifth less each time, down to %d", bounds, DefaultConfig().MinConcurrency)
	}
	expect.Equal(t, g.Bounds()["operate"], DefaultConfig().MinConcurrency, "slots of a class with few requests in flight")
	m.wait = time.Millisecond
	for range 100 {
		c.add(every)
		fill()
	}
	expect.Equal(t, g.Bounds()["feed"], 512, "slots after the overload")
}

// An admitted request can return after waiting, even during overload, as long as there are free slots.
func TestGates_Return(t *testing.T) {
	c, m := &clock{time.Unix(1e9, 0)}, &machine{wait: 10 * time.Millisecond}
	cfg := DefaultConfig()
	cfg.MinConcurrency = 1
	g := NewGates(cfg, 3, map[string]int{"fixed": 2}, m.waits, c.now)
	g.Enter("x")
	g.Enter("x")
	g.Leave("x")
	for range 20 {
		c.add(every)
		g.Enter("other")
		g.Leave("other")
	}
	if n := g.Bounds()["x"]; n != 1 || g.Enter("x") {
		t.Fatalf("got %d slots, want one, which is taken", n)
	}
	expect.True(t, g.Return("x") && g.Return("x"), "Return admits below the maximum")
	expect.False(t, g.Return("x"), "Return admits above the maximum")
	if !g.Enter("fixed") || !g.Enter("fixed") || g.Enter("fixed") || g.Return("fixed") || g.Bounds()["fixed"] != 0 {
		t.Error("a class with a fixed limit: want two slots, and no bound that follows the load")
	}
}

// The requests in flight never exceed the limit, and every slot is returned.
func TestGates_HoldLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, m := &clock{time.Unix(1e9, 0)}, &machine{}
		most := rapid.IntRange(1, 100).Draw(t, "most")
		g := NewGates(DefaultConfig(), most, nil, m.waits, c.now)
		under := 0
		for range 500 {
			m.wait = time.Duration(rapid.IntRange(0, 4).Draw(t, "wait")) * time.Millisecond
			c.add(time.Duration(rand.IntN(50)) * time.Millisecond)
			if rapid.Bool().Draw(t, "enter") {
				if g.Enter("x") {
					under++
				} else if under < min(most, DefaultConfig().MinConcurrency) {
					t.Fatalf("rejected with %d in flight", under)
				}
			} else if under > 0 {
				g.Leave("x")
				under--
			}
			if under > most {
				t.Fatalf("%d in flight, want at most %d", under, most)
			}
		}
	})
}

// A measurement of too few goroutines is ignored.
func TestGates_IgnoreFewMeasurements(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	g := NewGates(DefaultConfig(), 512, nil, func() (time.Duration, uint64) { return time.Second, enough - 1 }, c.now)
	g.Enter("x")
	c.add(every)
	g.Enter("x")
	expect.Equal(t, g.Bounds()["x"], 512, "slots")
}

func TestLongest(t *testing.T) {
	buckets := []float64{math.Inf(-1), 0.001, 0.002, 0.003, math.Inf(1)}
	for _, c := range []struct {
		counts, before []uint64
		want           time.Duration
		of             uint64
	}{
		{[]uint64{0, 0, 0, 0}, nil, 0, 0},
		{[]uint64{100, 0, 0, 0}, nil, 0, 100},
		{[]uint64{95, 0, 5, 0}, nil, 0, 100},
		{[]uint64{94, 0, 6, 0}, nil, 2 * time.Millisecond, 100},
		{[]uint64{90, 0, 5, 5}, nil, 2 * time.Millisecond, 100},
		{[]uint64{0, 10, 0, 0}, nil, time.Millisecond, 10},
		{[]uint64{90, 10, 0, 100}, []uint64{90, 0, 0, 100}, time.Millisecond, 10},
	} {
		h := &metrics.Float64Histogram{Counts: c.counts, Buckets: buckets}
		if got, of := longest(h, c.before); got != c.want || of != c.of {
			t.Errorf("%v since %v: got %s of %d, want %s of %d", c.counts, c.before, got, of, c.want, c.of)
		}
	}
}

// The scheduler's metrics exist and change when goroutines wait.
func TestSchedulerWaits(t *testing.T) {
	waits := SchedulerWaits()
	waits()
	done := make(chan struct{}, 1000)
	for range cap(done) {
		go func() {
			for began := time.Now(); time.Since(began) < 100*time.Microsecond; { // keeps a processor busy
			}
			done <- struct{}{}
		}()
	}
	for range cap(done) {
		<-done
	}
	if long, of := waits(); of < 50 || long == 0 {
		t.Errorf("got %s of %d, want a measurement of some of a thousand goroutines", long, of)
	}
}
