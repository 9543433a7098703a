package score_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

const day = 24 * time.Hour

func TestScore_Values(t *testing.T) {
	noon := schemas.MicrosOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	later := noon + schemas.Micros(day/time.Microsecond)
	base := score.Base(1, noon, day)
	tests := []struct {
		name      string
		got, want schemas.BaseScore
	}{
		{"a half-life of age is ln 2", score.Base(1, later, day) - base, math.Ln2},
		{"half the half-life counts double", score.Base(1, later, day/2) - score.Base(1, noon, day/2), 2 * math.Ln2},
		{"quality e is one", score.Base(math.E, noon, day) - base, 1},
		{"quality below one subtracts", score.Base(1/math.E, noon, day) - base, -1},
		{"weight one changes nothing", schemas.BaseScore(score.Weighted(base, 1)), base},
		{"weight two adds ln 2", schemas.BaseScore(score.Weighted(base, 2)) - base, math.Ln2},
		{"the epoch is zero", score.Base(1, 0, day), 0},
	}
	for _, tt := range tests {
		expect.Near(t, tt.got, tt.want, 1e-8, "%s", tt.name)
	}
}

// At every moment, the order of two pins by score is their order by quality · weight · 2^(−age/half-life).
func TestWeighted_OrdersByDecayedWeightAtAnyTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pin := func(label string) (stored schemas.PoolScore, decayed func(now schemas.Micros) float64) {
			quality := rapid.Float64Range(0.01, 100).Draw(t, label+" quality")
			weight := rapid.Float32Range(0.5, 4).Draw(t, label+" weight")
			created := schemas.Micros(rapid.Int64Range(1.7e15, 1.7e15+20*86400e6).Draw(t, label+" created"))
			return score.Weighted(score.Base(quality, created, day), weight), func(now schemas.Micros) float64 {
				return quality * float64(weight) * math.Exp2(-float64(now-created)/86400e6)
			}
		}
		a, decayedA := pin("a")
		b, decayedB := pin("b")
		if math.Abs(float64(a-b)) < 1e-6 {
			return
		}
		now := schemas.Micros(rapid.Int64Range(1.7e15, 1.7e15+90*86400e6).Draw(t, "now"))
		expect.Equal(t, a > b, decayedA(now) > decayedB(now), "a above b")
	})
}
