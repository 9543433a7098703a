package feature

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
)

// A store that keeps up is fresh. While it lags, the gauge is the age of the oldest missing action. While the lag is
// unknown, the gauge grows with time from its last value.
func TestLateness_Metrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		metrics, err := NewMetrics(reg)
		must.OK(t, err)
		type answer struct {
			oldest time.Time
			err    error
		}
		var says atomic.Pointer[answer]
		var log strings.Builder
		l := Lateness{
			Every: 5 * time.Second, Metrics: metrics, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now,
			Oldest: func(context.Context) (time.Time, error) { a := says.Load(); return a.oldest, a.err },
		}
		failing := &answer{err: errors.New("controller unavailable")}
		began := time.Now()
		step := func(what string, after time.Duration, gauge float64, checks uint64, late float64) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			sum, n := observed(t, reg, "smartfeed_features_end_to_end_latency_seconds")
			if got := metricstest.Sum(t, reg, "smartfeed_features_lag_seconds"); got != gauge || n != checks || sum != late {
				t.Errorf("%s: gauge %v, %d checks of %v s, want %v, %d of %v s", what, got, n, sum, gauge, checks, late)
			}
		}
		says.Store(failing)
		stop := topicstest.Run(t, l.Run)
		step("never successful", 61*time.Second, 61, 0, 0)
		says.Store(new(answer))
		step("complete", 4*time.Second, 0, 1, 0) // at 65 s
		says.Store(&answer{oldest: began.Add(66 * time.Second)})
		step("stuck", 20*time.Second, 19, 5, 4+9+14+19)
		says.Store(failing)
		step("stuck, checks fail", 60*time.Second, 79, 5, 46)
		says.Store(new(answer))
		step("complete again", 5*time.Second, 0, 6, 46)
		says.Store(&answer{oldest: time.Now().Add(time.Hour)})
		step("a clock that is ahead", 5*time.Second, 0, 7, 46)
		must.OK(t, stop())
		expect.Equal(t, strings.Count(log.String(), "controller unavailable"), 2, "errors, one per failure, in %s", &log)
	})
}

// observed returns the sum and count of a histogram.
func observed(t *testing.T, reg *prometheus.Registry, name string) (sum float64, n uint64) {
	t.Helper()
	for _, f := range must.Get(reg.Gather())(t) {
		if f.GetName() == name {
			h := f.GetMetric()[0].GetHistogram()
			return h.GetSampleSum(), h.GetSampleCount()
		}
	}
	t.Fatalf("no %s", name)
	return 0, 0
}
