package hedged

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

const ms = time.Millisecond

var errDown = errors.New("down")

// fake is a store whose reads take a given time and can be canceled.
type fake struct {
	takes   func(call int64) time.Duration
	err     func(call int64) error
	newest  int64 // positions 1 to newest exist …
	lacks   int64 // … except this one
	calls   atomic.Int64
	cutOff  atomic.Int64
	longest atomic.Int64 // the longest call, ns
}

func takes(d time.Duration) func(int64) time.Duration { return func(int64) time.Duration { return d } }

func newFake(d time.Duration) *fake {
	return &fake{takes: takes(d), err: func(int64) error { return nil }, newest: 30}
}

// hung never answers; its calls end when they are canceled.
func hung() *fake { return newFake(time.Hour) }

func down() *fake {
	f := newFake(0)
	f.err = func(int64) error { return errDown }
	return f
}

// work takes the time of a call.
func (f *fake) work(ctx context.Context) error {
	n, began := f.calls.Add(1), time.Now()
	defer func() { f.longest.Store(max(f.longest.Load(), int64(time.Since(began)))) }()
	timer := time.NewTimer(f.takes(n))
	defer timer.Stop()
	select {
	case <-timer.C:
		return f.err(n)
	case <-ctx.Done():
		f.cutOff.Add(1)
		return ctx.Err()
	}
}

func (f *fake) Page(ctx context.Context, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64, error) {
	if err := f.work(ctx); err != nil {
		return nil, 0, err
	}
	var all []schemas.FeedEntry
	for p := min(below-1, f.newest); p > 0 && len(all) < n; p-- {
		if p != f.lacks {
			all = append(all, schemas.FeedEntry{User: user, Position: p})
		}
	}
	return all, 0, nil
}

func (f *fake) Edges(ctx context.Context, user schemas.UserID, _ []schemas.ID) ([]schemas.Edge, error) {
	return []schemas.Edge{{User: user, Other: "user:2"}, {User: user, Other: "user:3"}}, f.work(ctx)
}

func (f *fake) Cards(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error) {
	return map[schemas.PinID]schemas.Card{pins[0]: {Title: "t"}}, f.work(ctx)
}

func (f *fake) DeletedUsers(ctx context.Context, users []schemas.UserID) (map[schemas.UserID]bool, error) {
	return map[schemas.UserID]bool{users[0]: true}, f.work(ctx)
}

func (f *fake) List(ctx context.Context, _ schemas.Followee, from string, _ int) ([]schemas.PinVersion, string, error) {
	if from == "bad" {
		f.calls.Add(1)
		return nil, "", fmt.Errorf("%w: bad", feedstore.ErrBadPlace)
	}
	return []schemas.PinVersion{{Pin: "pin:1"}}, "next", f.work(ctx)
}

func newStore(t *testing.T, cfg Config, a, b feed.Store) *Store {
	t.Helper()
	s := must.Get(New(cfg, Stores{Primary: a, Standby: b}, prometheus.NewRegistry()))(t)
	t.Cleanup(s.Close)
	return s
}

// cold returns the default configuration without warm reads.
func cold() Config {
	cfg := DefaultConfig()
	cfg.WarmRatio = 0
	return cfg
}

func TestRead_Outcomes(t *testing.T) {
	lacking := func(d time.Duration, position int64) *fake {
		f := newFake(d)
		f.lacks = position
		return f
	}
	for _, c := range []struct {
		name   string
		a, b   *fake
		below  int64
		took   time.Duration
		want   string // the first and the last position
		err    error
		calls  [2]int64
		cutOff [2]int64
		reason string
	}{
		{name: "the first answers", a: newFake(10 * ms), b: newFake(0), took: 10 * ms, want: "30-21", calls: [2]int64{1, 0}},
		{name: "the first fails", a: down(), b: newFake(10 * ms), took: 10 * ms, want: "30-21", calls: [2]int64{1, 1}, reason: "failed"},
		{name: "the first is slow", a: newFake(200 * ms), b: newFake(10 * ms), took: 70 * ms, want: "30-21",
			calls: [2]int64{1, 1}, cutOff: [2]int64{1, 0}, reason: "slow"},
		{name: "the first is slow, the second slower", a: newFake(90 * ms), b: newFake(200 * ms), took: 90 * ms, want: "30-21",
			calls: [2]int64{1, 1}, cutOff: [2]int64{0, 1}, reason: "slow"},
		{name: "the second fails early", a: newFake(90 * ms), b: down(), took: 90 * ms, want: "30-21", calls: [2]int64{1, 1}, reason: "slow"},
		{name: "both fail", a: down(), b: down(), err: errDown, calls: [2]int64{1, 1}, reason: "failed"},
		{name: "both hang", a: hung(), b: hung(), took: time.Second, err: context.DeadlineExceeded, calls: [2]int64{1, 1},
			cutOff: [2]int64{1, 1}, reason: "slow"},
		{name: "a hole in the first", a: lacking(10*ms, 27), b: newFake(10 * ms), took: 20 * ms, want: "30-21", calls: [2]int64{1, 1}, reason: "stale"},
		{name: "the first lacks the newest requested entry", a: lacking(10*ms, 30), b: newFake(10 * ms), below: 31, took: 20 * ms,
			want: "30-21", calls: [2]int64{1, 1}, reason: "stale"},
		{name: "the first ends above the trim position", a: lacking(0, 1), b: newFake(10 * ms), below: 5, took: 10 * ms, want: "4-1",
			calls: [2]int64{1, 1}, reason: "stale"},
		{name: "a hole in both: the longer answer", a: lacking(10*ms, 27), b: lacking(10*ms, 24), took: 20 * ms, want: "30-25 23-20", calls: [2]int64{1, 1}, reason: "stale"},
		{name: "a hole in both: the first", a: lacking(10*ms, 24), b: lacking(10*ms, 27), took: 20 * ms, want: "30-25 23-20", calls: [2]int64{1, 1}, reason: "stale"},
		{name: "a hole, the second is down", a: lacking(10*ms, 24), b: down(), took: 10 * ms, want: "30-25 23-20", calls: [2]int64{1, 1}, reason: "stale"},
		{name: "a hole, the second hangs", a: lacking(10*ms, 27), b: hung(), took: 70 * ms, want: "30-28 26-20", calls: [2]int64{1, 1},
			cutOff: [2]int64{0, 1}, reason: "stale"},
		{name: "the first hangs, a hole in the second", a: hung(), b: lacking(10*ms, 27), took: 130 * ms, want: "30-28 26-20", calls: [2]int64{1, 1},
			cutOff: [2]int64{1, 0}, reason: "slow"},
		{name: "the first is down, a hole in the second", a: down(), b: lacking(10*ms, 24), took: 10 * ms, want: "30-25 23-20", calls: [2]int64{1, 1}, reason: "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, cold(), c.a, c.b)
				if c.below == 0 {
					c.below = math.MaxInt64
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				entries, _, err := s.Page(ctx, "user:1", c.below, 10)
				check(t, "duration", time.Since(began), c.took, nil)
				expect.Is(t, err, c.err, "error")
				check(t, "positions", span(entries), c.want, nil)
				s.Close()
				check(t, "calls", [2]int64{c.a.calls.Load(), c.b.calls.Load()}, c.calls, nil)
				check(t, "cut off", [2]int64{c.a.cutOff.Load(), c.b.cutOff.Load()}, c.cutOff, nil)
				for _, reason := range []string{"failed", "slow", "late", "stale", "warm"} {
					want := 0.0
					if reason == c.reason {
						want = 1
					}
					check(t, "extra reads because "+reason, count(t, s.metrics.extra.WithLabelValues(reason)), want, nil)
				}
			})
		})
	}
}

// An answer with a hole is returned before the read's deadline, however short the remaining time is.
func TestRead_ReturnsHoleBeforeDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newFake(10 * ms)
		a.lacks = 27
		s := newStore(t, cold(), a, hung())
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		began := time.Now()
		entries, _, err := s.Page(ctx, "user:1", math.MaxInt64, 10)
		check(t, "page", span(entries), "30-28 26-20", err)
		check(t, "duration: half of what was left for the standby", time.Since(began), 30*ms, nil)
	})
}

// If the primary has a hole, a standby that hangs delays only a few reads. When it responds again, it is queried again. It
// becomes first after it has won enough reads of entries that the primary lacks.
func TestRead_HangingStandbyDelaysFewReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFake(5*ms), hung()
		a.lacks = 27
		s := newStore(t, DefaultConfig(), a, b)
		calls := func() float64 { return count(t, s.metrics.extra.WithLabelValues("stale")) }
		took := traffic(t, s, 2000, 5*ms)
		// Two of the reads in the first 60 ms, in which a dozen start, count as missed before any other is decided.
		if waited := share(took, 5*ms) * 2000; waited > 20 || waited != calls() || waited < silent {
			t.Errorf("%v of 2000 reads have waited for a standby that hangs, %v called it; want a few", waited, calls())
		}
		synctest.Wait() // calls without a waiting caller have started
		b.takes = takes(5 * ms)
		traffic(t, s, 2000, 5*ms)
		expect.False(t, s.balance.isFirst(primary), "the primary is first although it lacks entries of the standby")
	})
}

// span formats the runs of consecutive positions, the first and the last of each.
func span(entries []schemas.FeedEntry) string {
	var runs []string
	for from := 0; from < len(entries); {
		to := from
		for to+1 < len(entries) && entries[to+1].Position == entries[to].Position-1 {
			to++
		}
		runs = append(runs, fmt.Sprintf("%d-%d", entries[from].Position, entries[to].Position))
		from = to + 1
	}
	return strings.Join(runs, " ")
}

func TestRead_EveryKindHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, cold(), down(), newFake(ms))
		entries, _, err := s.Page(t.Context(), "user:1", 3, 10)
		check(t, "page", span(entries), "2-1", err)
		edges, err := s.Edges(t.Context(), "user:1", []schemas.ID{"user:2"})
		check(t, "edges", len(edges), 2, err)
		cards, err := s.Cards(t.Context(), []schemas.PinID{"pin:1"})
		check(t, "cards", cards["pin:1"].Title, "t", err)
		deletedUsers, err := s.DeletedUsers(t.Context(), []schemas.UserID{"user:1"})
		check(t, "deleted_users", deletedUsers["user:1"], true, err)
		pins, next, err := s.List(t.Context(), "user:1", "", 10)
		check(t, "list", fmt.Sprint(len(pins), next), "1next", err)
		for _, kind := range []string{"page", "edges", "cards", "deleted_users", "list"} {
			m := must.Get(s.metrics.seconds.MetricVec.GetMetricWithLabelValues(kind))(t)
			check(t, "counted reads of kind "+kind, count(t, m), 1.0, nil)
		}
	})
}

// count returns the value of a counter, or the number of observations of a histogram.
func count(t *testing.T, c prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	must.OK(t, c.Write(&m))
	return m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
}

func check(t *testing.T, what string, got, want any, err error) {
	t.Helper()
	expect.Error(t, err, "", "%s", what)
	expect.NoDiff(t, got, want, "%s", what)
}

func TestRead_BadPlaceIsNotHedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake(0)
		s := newStore(t, cold(), newFake(0), b)
		_, _, err := s.List(t.Context(), "user:1", "bad", 1)
		expect.Is(t, err, feedstore.ErrBadPlace, "a bad place")
		check(t, "calls of the second store", b.calls.Load(), int64(0), nil)
	})
}

func TestRead_EndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := hung()
		s := newStore(t, cold(), a, hung())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*ms, cancel)
		began := time.Now()
		expect.Is(t, expect.ErrorOf(s.DeletedUsers(ctx, []schemas.UserID{"user:1"})), context.Canceled, "error")
		check(t, "duration", time.Since(began), 20*ms, nil)
		s.Close()
		expect.Equal(t, a.cutOff.Load(), 1, "cut-off calls")
	})
}

// traffic makes n reads, gap apart, each with a timeout of a second, and returns their durations. All must succeed.
func traffic(t *testing.T, s *Store, n int, gap time.Duration) []time.Duration {
	t.Helper()
	took, failed := attempts(t, s, n, gap)
	must.Equal(t, failed, 0, "failed reads of %d", n)
	return took
}

// attempts is traffic in which reads may fail.
func attempts(t *testing.T, s *Store, n int, gap time.Duration) (each []time.Duration, failed int) {
	t.Helper()
	took, done := make([]time.Duration, n), make(chan error, n)
	for i := range n {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			_, _, err := s.Page(ctx, "user:1", math.MaxInt64, 10)
			took[i] = time.Since(began)
			done <- err
		}()
		time.Sleep(gap)
	}
	for range n {
		if err := <-done; err != nil {
			failed++
		}
	}
	return took, failed
}

// share returns the share of the reads that took longer than d.
func share(took []time.Duration, d time.Duration) float64 {
	n := 0
	for _, t := range took {
		if t > d {
			n++
		}
	}
	return float64(n) / float64(len(took))
}

// With any fault of one store, every read is answered soon, and the other store gets little extra load.
func TestStore_Faults(t *testing.T) {
	const n = 20_000
	slowly := func(call int64) time.Duration { // 500 ms more for one call in ten
		if call%10 == 0 {
			return 505 * ms
		}
		return 5 * ms
	}
	slow := newFake(0)
	slow.takes = slowly
	slowStandby := newFake(0)
	slowStandby.takes = slowly
	failing := newFake(5 * ms)
	failing.err = func(call int64) error {
		if call%50 == 0 {
			return errDown
		}
		return nil
	}
	for _, c := range []struct {
		name   string
		a, b   *fake
		within time.Duration // 99 of 100
		extra  float64       // calls of both stores per read, minus one
		first  side
	}{
		{name: "both healthy", a: newFake(5 * ms), b: newFake(5 * ms), within: 5 * ms, extra: 0.021, first: primary},
		{name: "primary down", a: down(), b: newFake(5 * ms), within: 5 * ms, extra: 0.03, first: standby},
		{name: "primary hangs", a: hung(), b: newFake(5 * ms), within: 65 * ms, extra: 0.03, first: standby},
		{name: "primary slow in a tenth", a: slow, b: newFake(5 * ms), within: 65 * ms, extra: 0.1, first: standby},
		{name: "primary slow throughout", a: newFake(80 * ms), b: newFake(5 * ms), within: 65 * ms, extra: 0.03, first: standby},
		{name: "primary fails one call in fifty", a: failing, b: newFake(5 * ms), within: 10 * ms, extra: 0.042, first: primary},
		{name: "standby down", a: newFake(5 * ms), b: down(), within: 5 * ms, extra: 0.021, first: primary},
		{name: "standby hangs", a: newFake(5 * ms), b: hung(), within: 5 * ms, extra: 0.021, first: primary},
		{name: "standby slow in a tenth", a: newFake(5 * ms), b: slowStandby, within: 5 * ms, extra: 0.021, first: primary},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, DefaultConfig(), c.a, c.b)
				took := traffic(t, s, n, 5*ms)
				s.Close()
				expect.AtMost(t, share(took, c.within), 0.01, "share of the reads that took longer than %s", c.within)
				calls := c.a.calls.Load() + c.b.calls.Load()
				expect.AtMost(t, float64(calls)/n-1, c.extra, "extra reads per read")
				expect.True(t, s.balance.isFirst(c.first), "the %s is first at the end", c.first)
				check(t, "failovers", count(t, s.metrics.failovers), float64(c.first), nil)
			})
		})
	}
}

func TestBalance(t *testing.T) {
	cfg := DefaultConfig()
	cfg.FailoverLosses, cfg.FailbackReads, cfg.BudgetRatio = 3, 2, 0.5
	b := newBalance(cfg)
	for i, step := range []struct {
		name    string
		do      func() bool
		changes bool
		first   side
	}{
		{"a loss", func() bool { return b.lose(primary) }, false, primary},
		{"another loss", func() bool { return b.lose(primary) }, false, primary},
		{"two wins pay for one loss", func() bool { b.win(primary); b.win(primary); return b.lose(primary) }, false, primary},
		{"wins of the second pay for none", func() bool { b.win(standby); return false }, false, primary},
		{"nor do reads without a winner", func() bool { b.begin(); b.begin(); return false }, false, primary},
		{"a loss of the second", func() bool { return b.lose(standby) }, false, primary},
		{"a good read of the second", func() bool { return b.probe(standby, true) }, false, primary},
		{"the third loss on balance", func() bool { return b.lose(primary) }, true, standby},
		{"a loss of an earlier read", func() bool { return b.lose(primary) }, false, standby},
		{"a successful warm read", func() bool { return b.probe(primary, true) }, false, standby},
		{"a failed one", func() bool { return b.probe(primary, false) }, false, standby},
		{"successful again", func() bool { return b.probe(primary, true) }, false, standby},
		{"a late one of the first store", func() bool { return b.probe(standby, true) }, false, standby},
		{"two in a row", func() bool { return b.probe(primary, true) }, true, primary},
		{"a loss", func() bool { return b.lose(primary) }, false, primary},
		{"another loss", func() bool { return b.lose(primary) }, false, primary},
		{"the third loss", func() bool { return b.lose(primary) }, true, standby},
		{"the other loses, too", func() bool { b.lose(standby); b.lose(standby); return b.lose(standby) }, true, primary},
	} {
		if changed := step.do(); changed != step.changes || !b.isFirst(step.first) {
			t.Fatalf("step %d, %s: changed %v, want %v, with the %s first", i, step.name, changed, step.changes, step.first)
		}
	}
}

func TestBalance_Credit(t *testing.T) {
	cfg := DefaultConfig()
	cfg.BudgetRatio, cfg.BudgetBurst = 0.25, 2
	b := newBalance(cfg)
	for i, step := range []struct {
		name string
		do   func()
		want float64 // of the standby
	}{
		{"an answer in time at full credit", func() { b.inTime(standby, false) }, 2},
		{"two reads on credit", func() { b.borrow(standby); b.borrow(standby) }, 0},
		{"a third read", func() { b.borrow(standby) }, 0},
		{"one is in time", func() { b.inTime(standby, true) }, 1.25},
		{"the other is late", func() { b.late(standby, true) }, 1.25},
		{"calls of the primary", func() { b.inTime(primary, false); b.late(primary, false) }, 1.25},
		{"a first read in time", func() { b.inTime(standby, false) }, 1.5},
		{"a late call", func() { b.late(standby, false) }, 0.5},
		{"another late call", func() { b.late(standby, false) }, 0},
	} {
		step.do()
		expect.Equal(t, b.credit[standby], step.want, "step %d, %s: credit", i, step.name)
	}
}

func TestBalance_EarnsAndSavesExtraReads(t *testing.T) {
	cfg := DefaultConfig()
	cfg.BudgetRatio, cfg.BudgetBurst, cfg.WarmRatio = 0.25, 2, 0.1
	b := newBalance(cfg)
	spent, warmed := 0, 0
	spendAll := func() {
		for spent < 10_000 && b.spend() {
			spent++
		}
	}
	for range 1000 {
		b.begin() // saves no more than the burst
	}
	spendAll()
	for range 1000 {
		if _, warm := b.begin(); warm {
			warmed++
		}
		spendAll()
	}
	expect.Equal(t, spent, 2+250, "extra reads of 2000 reads: the two saved and a quarter of the last thousand")
	expect.Between(t, warmed, 99, 101, "reads of 1000 that warm the second store")
}

// The primary is first again when it is healthy, and not before.
func TestBalance_PrimaryIsFirstAfterRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var well atomic.Bool
		a := newFake(5 * ms)
		a.err = func(int64) error {
			if well.Load() {
				return nil
			}
			return errDown
		}
		s := newStore(t, DefaultConfig(), a, newFake(5*ms))
		traffic(t, s, 5000, 5*ms)
		must.Equal(t, s.balance.isFirst(primary), false, "the primary is first although it is down")
		check(t, "failovers", count(t, s.metrics.failovers), 1.0, nil)
		well.Store(true)
		traffic(t, s, 49*50, 5*ms) // one read in fifty is a warm read
		expect.False(t, s.balance.isFirst(primary), "the primary is first before 50 successful reads")
		traffic(t, s, 3*50, 5*ms)
		expect.True(t, s.balance.isFirst(primary), "the primary is first, because it is healthy")
		check(t, "failovers and failbacks", count(t, s.metrics.failovers), 2.0, nil)
	})
}

// When the budget is used up, a read waits for a slow store, but not beyond Late while the other store is in time.
func TestRead_WaitsWithoutBudget(t *testing.T) {
	tenth := newFake(0)
	tenth.takes = func(call int64) time.Duration {
		if call%10 == 0 {
			return 500 * ms
		}
		return 5 * ms
	}
	cfg := cold()
	cfg.BudgetRatio, cfg.BudgetBurst, cfg.FailoverLosses = 0, 3, 10_000
	for _, c := range []struct {
		name       string
		a, b       *fake
		reads      int
		gap        time.Duration
		slow, late float64       // extra reads
		took       time.Duration // the longest
	}{
		{name: "slow", a: newFake(80 * ms), b: newFake(time.Second), reads: 10, slow: 3, took: 80 * ms},
		{name: "late, the second is late, too", a: newFake(300 * ms), b: newFake(time.Second), reads: 10, slow: 3, late: 3, took: 300 * ms},
		{name: "late, the second healthy", a: hung(), b: newFake(3 * ms), reads: 100, gap: 5 * ms, slow: 3, late: 97, took: 103 * ms},
		{name: "late in a tenth", a: tenth, b: newFake(3 * ms), reads: 1000, gap: 5 * ms, slow: 3, late: 97, took: 103 * ms},
		// After 100 ms three of ten are sent. When their answers arrive, the other reads check again, three at a time.
		{name: "late, all at once", a: hung(), b: newFake(3 * ms), reads: 10, slow: 3, late: 7, took: 113 * ms},
		{name: "failed", a: down(), b: newFake(5 * ms), reads: 10, took: 5 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, cfg, c.a, c.b)
				took := slices.Max(traffic(t, s, c.reads, c.gap))
				check(t, "because it is slow", count(t, s.metrics.extra.WithLabelValues("slow")), c.slow, nil)
				check(t, "because it is late", count(t, s.metrics.extra.WithLabelValues("late")), c.late, nil)
				check(t, "the longest read", took, c.took, nil)
			})
		})
	}
}

// A first store that is only slightly late wins each race. That says nothing about the second store, which is queried as before
// when the first stops responding.
func TestBalance_CanceledCallsCostNoCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := cold()
		cfg.BudgetRatio, cfg.BudgetBurst, cfg.FailoverLosses = 0, 3, 10_000
		const before = 50
		first, second := newFake(0), newFake(5*ms)
		first.takes = func(call int64) time.Duration {
			if call > before {
				return time.Hour
			}
			return 102 * ms
		}
		s := newStore(t, cfg, first, second)
		traffic(t, s, before, 200*ms)
		check(t, "canceled calls of the second", second.cutOff.Load(), int64(before-3), nil) // three were slow and used the budget
		check(t, "the longest read", slices.Max(traffic(t, s, 10, 200*ms)), 105*ms, nil)
	})
}

// Reads that wait when the stores swap query the other one, without regard to budget and credit.
func TestRead_WaitingReadsFollowSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := cold()
		cfg.BudgetRatio, cfg.BudgetBurst, cfg.FailoverLosses = 0, 2, 2
		s := newStore(t, cfg, hung(), newFake(150*ms))
		// Two reads query the second store after 60 ms, and two after 100 ms. The answers after 210 ms decide. The
		// scheduler determines which reads check again 5 ms later than others.
		expect.Between(t, slices.Max(traffic(t, s, 10, 0)), 360*ms, 365*ms, "longest read")
	})
}

// When both stores are overloaded in any way, a second query for every read would make the overload much worse.
func TestStore_BothOverloaded(t *testing.T) {
	const n, gap = 5000, 5 * ms
	made := int64(0)
	some := func(share int64, then time.Duration) *fake {
		f := newFake(0)
		made++
		other := made % 2 * 50 // the two stores are late for different calls
		f.takes = func(call int64) time.Duration {
			if (call*7919+other)%100 < share {
				return then
			}
			return 20 * ms
		}
		return f
	}
	for _, c := range []struct {
		name string
		new  func() *fake
	}{
		{"all are late", func() *fake { return newFake(300 * ms) }},
		{"all are slow", func() *fake { return newFake(90 * ms) }},
		{"none in time", hung},
		{"most are late", func() *fake { return some(80, 400*ms) }},
		{"half are late", func() *fake { return some(50, 400*ms) }},
		{"a third never answers", func() *fake { return some(33, time.Hour) }},
		{"most never answer", func() *fake { return some(80, time.Hour) }},
		{"nearly all never answer", func() *fake { return some(93, time.Hour) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := c.new(), c.new()
				s := newStore(t, DefaultConfig(), a, b)
				attempts(t, s, n, gap)
				s.Close() // also waits for warm reads
				expect.True(t, a.calls.Load()+b.calls.Load() != n, "the fault causes extra reads")
				// Per read: 0.05 from the budget, 0.02 warm reads, 0.03 that were saved or on credit, and those that follow a
				// swap. The scheduler determines how many of these there are.
				expect.AtMost(t, float64(a.calls.Load()+b.calls.Load())/n-1, 0.15, "extra reads per read")
				// One store recovers, while the other hangs: with nothing saved, it becomes first after 400 reads and those
				// in flight.
				for _, f := range []*fake{a, b} {
					f.takes = takes(5 * ms)
				}
				if s.balance.isFirst(primary) {
					a.takes = takes(time.Hour)
				} else {
					b.takes = takes(time.Hour)
				}
				_, failed := attempts(t, s, 1000, gap)
				expect.AtMost(t, failed, 700, "failed reads of 1000 although one store has recovered")
				_, failed = attempts(t, s, 1000, gap)
				expect.Equal(t, failed, 0, "failed reads of the next 1000")
			})
		})
	}
}

// Warm reads show differences between the stores.
func TestWarm_DetectsDifferences(t *testing.T) {
	for _, c := range []struct {
		newest          int64
		same, different float64
	}{{30, 10, 0}, {29, 0, 10}} {
		synctest.Test(t, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.WarmRatio = 0.5
			b := newFake(5 * ms)
			b.newest = c.newest
			s := newStore(t, cfg, newFake(5*ms), b)
			traffic(t, s, 20, 5*ms)
			s.Close()
			check(t, "alike", count(t, s.metrics.compared.WithLabelValues("same")), c.same, nil)
			check(t, "different", count(t, s.metrics.compared.WithLabelValues("different")), c.different, nil)
		})
	}
}

func TestSameEdges_IgnoresOrder(t *testing.T) {
	a := []schemas.Edge{{Other: "user:1"}, {Other: "user:2", Live: true}}
	if !sameEdges(a, []schemas.Edge{a[1], a[0]}) || sameEdges(a, []schemas.Edge{a[0], {Other: "user:2"}}) {
		t.Error("edges are compared by order, or not at all")
	}
}

func TestLatency_P999(t *testing.T) {
	var l latency
	for range 999 {
		l.record(5 * ms)
	}
	expect.Equal(t, l.p999(), 0, "of 999 samples")
	l.record(200 * ms)
	expect.Between(t, l.p999(), 5*ms, 6*ms, "p999 with one slow of a thousand, a tenth above it at most")
	for range 200 {
		l.record(200 * ms)
	}
	expect.Between(t, l.p999(), 200*ms, 220*ms, "p999 with many slow ones, a tenth above it at most")
	for range 50_000 { // displaces the slow ones
		l.record(10 * ms)
	}
	expect.Between(t, l.p999(), 10*ms, 11*ms, "p999 later, a tenth above it at most")
	for _, d := range []time.Duration{0, 1, 100 * time.Microsecond, time.Hour} {
		l.record(d) // must not go out of bounds
	}
}

// The hedge follows the latency of its store, within its bounds.
func TestHedge_FollowsLatency(t *testing.T) {
	for _, c := range []struct {
		takes, low, high time.Duration
	}{{time.Microsecond, 5 * ms, 5 * ms}, {20 * ms, 20 * ms, 22 * ms}, {300 * ms, 60 * ms, 60 * ms}} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t, cold(), newFake(c.takes), newFake(time.Hour))
			expect.Equal(t, s.page.after(primary, s.cfg), 60*ms, "without samples")
			traffic(t, s, 2000, ms)
			expect.Between(t, s.page.after(primary, s.cfg), c.low, c.high, "of a store that takes %s", c.takes)
		})
	}
}

// A canceled call took longer than measured. If it counted as fast, a slow store would be hedged ever sooner.
func TestLatency_CountsCanceledCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := cold()
		cfg.BudgetRatio, cfg.FailoverLosses = 1, 10_000
		a := newFake(0)
		a.takes = func(call int64) time.Duration {
			if call > 2000 && call%10 == 0 {
				return 300 * ms
			}
			return 6 * ms
		}
		s := newStore(t, cfg, a, newFake(20*ms))
		traffic(t, s, 2000, ms)
		quick := s.page.after(primary, cfg)
		traffic(t, s, 2000, ms)
		expect.AtMost(t, quick, 7*ms, "hedged after")
		expect.AtLeast(t, s.page.after(primary, cfg), 26*ms, "hedged after, when a tenth was cut off after 26 ms or more")
	})
}

func TestPageRead_Complete(t *testing.T) {
	at := func(positions ...int64) (all []schemas.FeedEntry) {
		for _, p := range positions {
			all = append(all, schemas.FeedEntry{Position: p})
		}
		return all
	}
	for _, c := range []struct {
		name string
		page pageRead
		want bool
	}{
		{"empty feed", pageRead{nil, 0, math.MaxInt64, 10}, true},
		{"from the newest to the end", pageRead{at(3, 2, 1), 0, math.MaxInt64, 10}, true},
		{"from the newest to the trim position", pageRead{at(9, 8), 7, math.MaxInt64, 10}, true},
		{"above the trim position", pageRead{at(9, 8), 6, math.MaxInt64, 10}, false},
		{"full", pageRead{at(9, 8), 0, 10, 2}, true},
		{"full, with a hole", pageRead{at(9, 7), 0, 10, 2}, false},
		{"starts too low", pageRead{at(8, 7), 0, 10, 2}, false},
		{"all entries missing", pageRead{nil, 0, 10, 2}, false},
		{"empty below the trim position", pageRead{nil, 9, 10, 2}, true},
		{"empty below the first", pageRead{nil, 0, 1, 2}, true},
		{"limit zero", pageRead{nil, 0, 10, 0}, true},
		{"newest, as the service requests it", pageRead{at(3, 2, 1), 0, math.MaxInt64 - 1, 10}, true},
	} {
		check(t, c.name, c.page.complete(), c.want, nil)
	}
}
