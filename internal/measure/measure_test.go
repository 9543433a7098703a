package measure

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestRun_SendsRequestsWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		cfg := Config{Lasting: time.Second, Timeout: time.Second, InFlight: 1}
		results := Run(t.Context(), cfg, Load{Name: "x", Rate: 4, Do: func(context.Context, int) error {
			at = append(at, time.Since(began))
			return nil
		}})
		expect.NoDiff(t, at, []time.Duration{0, 250e6, 500e6, 750e6}, "times of requests")
		if r := results[0]; r.Answered != 4 || r.Done != 4 || r.Latency.Max() != 0 {
			t.Errorf("got %+v, max %s, want 4 immediate responses", r, r.Latency.Max())
		}
	})
}

// If a server stalls for a second, every request that was due in that second shows it.
func TestRun_MeasuresLatencyFromDueTime(t *testing.T) {
	for name, inFlight := range map[string]int{"one at a time": 1, "many": 100} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wakes := time.Now().Add(time.Second)
				cfg := Config{Lasting: 2 * time.Second, Timeout: time.Minute, InFlight: inFlight}
				r := Run(t.Context(), cfg, Load{Name: "x", Rate: 10, Do: func(context.Context, int) error {
					time.Sleep(time.Until(wakes))
					return nil
				}})[0]
				// Ten requests are due after 0, 100, … 900 ms, and answered after a second: 1000, 900, … 100 ms. Ten more are answered
				// at once.
				expect.AtMost(t, r.Latency.Quantile(0.5), time.Millisecond, "median")
				expect.Between(t, r.Latency.Quantile(0.75), 490*time.Millisecond, 520*time.Millisecond, "third quartile")
				expect.Equal(t, r.Latency.Max(), time.Second, "maximum")
			})
		})
	}
}

func TestRun_CountsAfterWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unavailable := errors.New("unavailable")
		var calls atomic.Int64
		cfg := Config{WarmUp: time.Second, Lasting: time.Second, Timeout: time.Second, InFlight: 10, Done: func() { calls.Add(1) }}
		r := Run(t.Context(), cfg, Load{Name: "x", Rate: 4, Do: func(_ context.Context, n int) error {
			return []error{unavailable, unavailable, unavailable, unavailable, nil, ErrDegraded, unavailable, nil}[n]
		}})[0]
		if r.Answered != 3 || r.Degraded != 1 || r.Failed != 1 || !errors.Is(r.Failure, unavailable) || r.Latency.Count() != 3 || calls.Load() != 8 {
			t.Errorf("got %+v, %d latencies, %d calls of Done: want four requests of the warm-up, one failed, one degraded", r, r.Latency.Count(), calls.Load())
		}
	})
}

func TestRun_TimesOutAndStopsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		r := Run(ctx, Config{Lasting: time.Minute, Timeout: time.Second, InFlight: 1}, Load{Name: "x", Rate: 1, Do: func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}})[0]
		if r.Failed != 3 || r.Answered != 0 || r.Missed != 57 {
			t.Errorf("got %+v: want two timed out, one canceled, 57 never sent", r)
		}
	})
}

func TestQuantile_IsAccurateToOneThirtySecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(0, int64(10*time.Hour)), 1, 200).Draw(t, "durations")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		var h Histogram
		for _, d := range all {
			h.Add(time.Duration(d))
		}
		slices.Sort(all)
		at := min(max(int(q*float64(len(all))+0.999999), 1), len(all)) - 1
		want := time.Duration(all[at])
		if got := h.Quantile(q); got < want || got > want+want/half+step {
			t.Fatalf("quantile %g is %s, want from %s to 1/32 more", q, got, want)
		}
		if h.Count() != int64(len(all)) || h.Max() != time.Duration(all[len(all)-1]) {
			t.Fatalf("count %d, most %s", h.Count(), h.Max())
		}
	})
}

func TestBuckets_AreContiguous(t *testing.T) {
	for i := 1; i < buckets; i++ {
		if from := upTo(i-1) + 1; bucketOf(from) != i || bucketOf(upTo(i)) != i {
			t.Fatalf("bucket %d is from %s to %s, but these are counted in %d and %d", i, from, upTo(i), bucketOf(from), bucketOf(upTo(i)))
		}
	}
	var h Histogram
	expect.True(t, h.Quantile(0.5) == 0 && h.Mean() == 0, "an empty histogram has no values")
	h.Add(time.Millisecond)
	h.Add(3 * time.Millisecond)
	expect.Equal(t, h.Mean(), 2*time.Millisecond, "mean")
}
