package objects

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// Times have no lower bound. A vector from the distant past has no weight compared with any other.
func TestMean_ExtremeTimes(t *testing.T) {
	for _, order := range [][]schemas.Micros{{math.MinInt64, 0}, {0, math.MinInt64}} {
		m := &mean{}
		for _, at := range order {
			m.add([]float32{float32(at)}, at, time.Hour)
		}
		if m.of[0] != 0 || m.weight != 1 {
			t.Errorf("order %v: mean %v of weight %v, want that of the newest", order, m.of, m.weight)
		}
	}
}

func TestMean_AnyOrder(t *testing.T) {
	const halfLife = time.Hour
	start := schemas.Micros(1_700_000_000_000_000)
	type one struct {
		at schemas.Micros
		v  []float32
	}
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 3).Draw(t, "elements")
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) one {
			return one{
				start + schemas.Micros(rapid.Int64Range(0, 5*3600e6).Draw(t, "time")),
				rapid.SliceOfN(rapid.Float32Range(-5, 5), dim, dim).Draw(t, "vector"),
			}
		}), 1, 20).Draw(t, "vectors")
		m, newest := &mean{}, start
		for _, x := range all {
			if !m.add(x.v, x.at, halfLife) {
				t.Fatal("a vector was ignored")
			}
			m = reread(t, m)
			newest = max(newest, x.at)
		}
		want, total := make([]float64, dim), 0.0
		for _, x := range all {
			w := math.Exp2(-float64(newest-x.at) / 3600e6)
			total += w
			for i, e := range x.v {
				want[i] += w * float64(e)
			}
		}
		for i := range want {
			want[i] /= total
		}
		expect.NoDiffBut(t, cmpopts.EquateApprox(1e-9, 1e-9), m.of, want, "means")
	})
}

func reread(t *rapid.T, m *mean) *mean {
	got := must.Get(packed.Decode[mean](packed.Encode(m)))(t)
	expect.NoDiffBut(t, cmp.Options{cmp.AllowUnexported(mean{}), cmpopts.EquateEmpty()}, &got, m, "read again")
	return &got
}

func TestMean_OtherLengthStartsNewMean(t *testing.T) {
	m := &mean{}
	steps := []struct {
		name  string
		v     []float32
		at    schemas.Micros
		taken bool
		want  []float32
	}{
		{"first", []float32{1, 2}, 100, true, []float32{1, 2}},
		{"older, of another length", []float32{9}, 99, false, []float32{1, 2}},
		{"newer, of another length", []float32{9}, 101, true, []float32{9}},
		{"at the same time", []float32{7}, 101, true, []float32{8}},
	}
	for _, s := range steps {
		expect.Equal(t, m.add(s.v, s.at, time.Hour), s.taken, "%s: taken", s.name)
		expect.NoDiff(t, m.vector(), s.want, "%s", s.name)
	}
}
