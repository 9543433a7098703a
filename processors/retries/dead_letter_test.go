package retries

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestConfig_DelayGrowsLinearlyThenDoubles(t *testing.T) {
	cfg := DefaultConfig()
	for n, want := range []time.Duration{
		1: 30 * time.Second, 2: time.Minute, 3: 90 * time.Second, 4: 3 * time.Minute, 5: 6 * time.Minute, 6: 12 * time.Minute,
		7: 24 * time.Minute, 8: 48 * time.Minute, 9: 96 * time.Minute, 10: 192 * time.Minute, 11: 6 * time.Hour, 12: 6 * time.Hour,
	} {
		if n == 0 {
			continue
		}
		expect.Equal(t, cfg.delay(int32(n)), want, "after failure %d", n)
	}
	cfg.LinearAttempts, cfg.InitialDelay = 1000, time.Hour
	expect.Equal(t, cfg.delay(1<<30), cfg.MaxDelay, "after 1000 failures or more")
}

func TestConfig_RecheckInterval(t *testing.T) {
	for first, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: time.Second, 30 * time.Second: 30 * time.Second, 24 * time.Hour: time.Minute,
	} {
		expect.Equal(t, (Config{InitialDelay: first}).recheckInterval(), want, "interval of checks with a first delay of %v", first)
	}
}

// Whenever retries are attempted, no interval contains more of them than the rate allows plus one second's worth.
func TestLimiter_KeepsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.01, 1000).Draw(t, "rate")
		var p limiter
		var now schemas.Micros
		var went []schemas.Micros
		for range 200 {
			now += schemas.Micros(rapid.Int64Range(0, int64(3e6/rate)).Draw(t, "later"))
			if p.allows(now) {
				p = p.next(now, rate)
				went = append(went, now)
			}
		}
		for i, from := range went {
			for j := i; j < len(went); j++ {
				span := float64(went[j]-from) / 1e6
				if n, most := float64(j-i+1), rate*(span+1)+1.001; n > most {
					t.Fatalf("%v retries within %v s at %v per second, want at most %v", n, span, rate, most)
				}
			}
		}
		expect.AtMost(t, p, limiter(now)+limiter(1e6/rate)+1, "end of the block at %v, at %v per second", now, rate)
	})
}

func TestLimitOf_NarrowestScopeWins(t *testing.T) {
	set := map[string]limit{
		"pins":              {Rate: 1, Priority: 1},
		"pins/objects":      {Rate: 2, Priority: 2},
		"pins/objects/late": {Rate: -1, Priority: 3},
	}
	for _, c := range []struct {
		kind string
		want limit
	}{
		{"pins/objects/late", limit{Rate: 7, Priority: 3}},
		{"pins/objects/early", limit{Rate: 2, Priority: 2}},
		{"pins/features/late", limit{Rate: 1, Priority: 1}},
		{"users/actors/late", limit{Rate: 7}},
	} {
		expect.Equal(t, limitOf(set, c.kind, 7), c.want, "%s", c.kind)
	}
}

func TestIsNew(t *testing.T) {
	for _, c := range []struct {
		name     string
		known    *deadLetter
		attempts int32
		want     bool
	}{
		{"first failure", nil, 0, true},
		{"first failure repeated", &deadLetter{State: schemas.RetryWaiting}, 0, false},
		{"first failure repeated while parked", &deadLetter{State: schemas.RetryParked}, 0, false},
		{"first failure repeated after the retry", &deadLetter{State: schemas.RetrySent, Attempts: 1}, 0, false},
		{"failed retry", &deadLetter{State: schemas.RetrySent, Attempts: 1}, 1, true},
		{"failed retry after Settle", &deadLetter{State: schemas.RetryDone, Attempts: 1}, 1, true},
		{"failed retry repeated", &deadLetter{State: schemas.RetryWaiting, Attempts: 1}, 1, false},
		{"failed retry of a removed dead letter", nil, 3, true},
		{"failure of a later retry than the known one", &deadLetter{State: schemas.RetryParked, Attempts: 1}, 2, true},
	} {
		l := &schemas.DeadLetter{Attempts: c.attempts}
		if c.known != nil {
			c.known.Checksum = checksum(l)
		}
		expect.Equal(t, isNew(c.known, l), c.want, "%s", c.name)
	}
}
