package settings

import (
	"math"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestWithin(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string // "": none
	}{
		"lowest":             {Within("n", 10, 10, 20), ""},
		"highest":            {Within("n", 20, 10, 20), ""},
		"below":              {Within("pools.max_candidates", 5, 10, 1_000_000), "pools.max_candidates: 5: want 10 to 1000000"},
		"above":              {Within("n", int64(21), 10, 20), "n: 21: want 10 to 20"},
		"no number":          {Within("share", math.NaN(), 0, 0.5), "share: NaN: want 0 to 0.5"},
		"a duration":         {Within("gap", 90*time.Minute, 0, time.Hour), "gap: 1h30m: want 0s to 1h"},
		"short durations":    {Within("wait", time.Nanosecond, 100*time.Microsecond, time.Minute), "wait: 1ns: want 100µs to 1m"},
		"tens in a duration": {Within("wait", 20*time.Hour+10*time.Minute+10*time.Second, 0, 10*time.Minute), "wait: 20h10m10s: want 0s to 10m"},
	}
	for name, tt := range tests {
		got := ""
		if tt.err != nil {
			got = tt.err.Error()
		}
		expect.Equal(t, got, tt.want, "%s", name)
	}
}

func TestShort(t *testing.T) {
	tests := map[time.Duration]string{
		24 * time.Hour: "24h", 90 * time.Minute: "1h30m", 2 * time.Minute: "2m", 10 * time.Second: "10s",
		time.Millisecond: "1ms", time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m",
	}
	for d, want := range tests {
		expect.Equal(t, Short(d), want, "%v", d)
	}
}
