package decay_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

const (
	hour     = schemas.Micros(3_600_000_000)
	halfLife = 24 * time.Hour
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-9*(1+math.Abs(want)) }

func TestAmount(t *testing.T) {
	one := decay.Amount{}.Plus(1, 0, halfLife)
	tests := []struct {
		name      string
		got, want float64
	}{
		{"no weights", decay.Amount{}.At(99*hour, halfLife), 0},
		{"at the same time", one.At(0, halfLife), 1},
		{"after a half-life", one.At(24*hour, halfLife), 0.5},
		{"after three", one.At(72*hour, halfLife), 0.125},
		{"before it happened", one.At(-24*hour, halfLife), 2},
		{"a newer weight", one.Plus(1, 24*hour, halfLife).At(24*hour, halfLife), 1.5},
		{"a late weight adds its decayed value", one.Plus(1, -24*hour, halfLife).At(0, halfLife), 1.5},
		{"a weight from the distant past adds 0", one.Plus(1, schemas.Micros(-1000*365*24)*hour, halfLife).At(0, halfLife), 1},
		{"a negative weight", one.Plus(-3, 0, halfLife).At(0, halfLife), -2},
		{"at the earliest time", decay.Amount{}.Plus(1, math.MinInt64, halfLife).At(0, halfLife), 0},
		{"a weight after one at the earliest time", decay.Amount{}.Plus(1, math.MinInt64, halfLife).Plus(1, 0, halfLife).At(0, halfLife), 1},
		{"a weight at the earliest time after another", one.Plus(1, math.MinInt64, halfLife).At(0, halfLife), 1},
		{"a thousand years", one.At(schemas.Micros(1000*365*24)*hour, halfLife), 0},
	}
	for _, tt := range tests {
		expect.True(t, near(tt.got, tt.want), "%s: got %v, want %v", tt.name, tt.got, tt.want)
	}
}

// The sum follows the formula for any order of weights.
func TestAmount_AnyOrder(t *testing.T) {
	type weighed struct {
		weight float64
		at     schemas.Micros
	}
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) weighed {
			return weighed{rapid.Float64Range(-5, 5).Draw(t, "weight"), schemas.Micros(rapid.Int64Range(0, 240).Draw(t, "hour")) * hour}
		}), 0, 20).Draw(t, "weights")
		now := schemas.Micros(rapid.Int64Range(0, 480).Draw(t, "now")) * hour
		var sum decay.Amount
		want := 0.0
		for _, w := range rapid.Permutation(all).Draw(t, "order") {
			sum = sum.Plus(w.weight, w.at, halfLife)
			want += w.weight * math.Exp2(-(now-w.at).Time().Sub(schemas.Micros(0).Time()).Hours()/24)
		}
		expect.Near(t, sum.At(now, halfLife), want, 1e-6, "amount")
	})
}
