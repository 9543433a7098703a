package related

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

const month = 30 * 24 * time.Hour

var monthly = decay.NewScale(month)

// The sum of strengths equals that of the weights, decayed to any time, regardless of the order of addition.
func TestStrength_EqualsDecayedSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := schemas.MicrosOf(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
		n := rapid.IntRange(1, 40).Draw(t, "n")
		sum, total := decay.None(), 0.0
		for range n {
			weight := rapid.Float64Range(0.01, 100).Draw(t, "weight")
			age := time.Duration(rapid.Int64Range(0, int64(20*month)).Draw(t, "age"))
			sum = sum.Plus(decay.SumOf(weight, schemas.MicrosOf(now.Time().Add(-age)), monthly))
			total += weight * math.Exp2(-float64(age)/float64(month))
		}
		got := math.Exp(float64(sum - decay.SumOf(1, now, monthly)))
		expect.Near(t, got, total, 1e-9*total, "sum of %d weights", n)
	})
}

func TestStrength_PlusAndShare(t *testing.T) {
	at := schemas.MicrosOf(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	later := schemas.MicrosOf(at.Time().Add(month))
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"none plus a sum", float64(decay.None().Plus(3)), 3},
		{"none plus none", float64(decay.None().Plus(decay.None())), math.Inf(-1)},
		{"share of a weight one half-life old", decay.SumOf(1, at, monthly).Share(decay.SumOf(1, later, monthly)), 0.5},
		{"share of the whole sum", decay.SumOf(2, at, monthly).Share(decay.SumOf(2, at, monthly)), 1},
		{"share above 1 by rounding", strength(1).Share(0.999999), 1},
		{"share of none", decay.None().Share(1), 0},
	} {
		expect.True(t, c.got == c.want || math.Abs(c.got-c.want) <= 1e-9, "%s: got %v, want %v", c.name, c.got, c.want)
	}
}

func TestNeighborRowRoundTrip(t *testing.T) {
	n := neighbor{Neighbor: schemas.Neighbor{Version: 7, Quality: 0.25}, strength: 456.5}
	want := schemas.Neighbor{Version: 9, Facets: schemas.Facets{Author: "user:a", Board: "board:b"}, Created: 5, Quality: 2}
	n.update(&want)
	n.update(&schemas.Neighbor{Version: 8, Facets: schemas.Facets{Author: "user:old"}, Quality: 1}) // arrived late
	got, err := packed.Decode[neighbor](packed.Encode(&n))
	if err != nil || got.strength != 456.5 || !cmp.Equal(got.Neighbor, want) {
		t.Errorf("decoded %+v, %v", got, err)
	}
	w := totals{strength: 2.5, kept: 7, deleted: true}
	expect.Equal(t, must.Get(packed.Decode[totals](packed.Encode(&w)))(t), w, "decoded")
}
