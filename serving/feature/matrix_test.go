package feature

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestMatrix(t *testing.T) {
	s, _ := serviceOf{store: history(t)}.start(t)
	nan := float32(math.NaN())
	pins := []schemas.PinID{"pin:3", "pin:2", "pin:none"}
	for name, c := range map[string]struct {
		features []string
		want     [][]float32
	}{
		"all kinds":  {[]string{"pair_author", "saves", "pin_saves", "pair_close", "mean_price"}, [][]float32{{2, 2, 0, 0.96, 10}, {1, 2, 0, 0.8944271909999159, 10}, {nan, 2, 0, nan, 10}}},
		"pins":       {[]string{"pin_save_share"}, [][]float32{{nan}, {nan}, {nan}}},
		"the user's": {[]string{"saves"}, [][]float32{{2}, {2}, {2}}},
	} {
		got := must.Get(s.Matrix(t.Context(), "user:1", pins, c.features))(t)
		same(t, name, c.want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-6))
	}
}

func TestMatrix_RejectsValuesThatAreNotNumbers(t *testing.T) {
	s, _ := serviceOf{store: history(t)}.start(t)
	must.OK(t, CheckNumbers(s.Definitions(), []string{"pair_author", "pin_save_share", "pair_close"}))
	for name, want := range map[string]string{"nope": "is not defined", "newest": "not numbers", "pair_interests": "not numbers", "taste": "not numbers"} {
		_, err := s.Matrix(t.Context(), "user:1", []schemas.PinID{"pin:1"}, []string{"saves", name})
		expect.Error(t, err, name, "unknown feature")
		expect.Error(t, err, want, "%s", name)
	}
}

// A model must not take a failure for missing data.
func TestMatrix_FailsWithStore(t *testing.T) {
	s, _ := serviceOf{store: &faulty{Store: empty{}, pins: func(context.Context) error { return errors.New("disk") }}}.start(t)
	_, err := s.Matrix(t.Context(), "user:1", []schemas.PinID{"pin:1"}, []string{"pair_author"})
	expect.Error(t, err, "features are degraded: store", "Matrix")
}

// BenchmarkMatrix computes 20 numbers of 200 candidates for a user with 200 actions, as a model receives them.
func BenchmarkMatrix(b *testing.B) {
	store := openTest(b, b.TempDir(), DefaultConfig())
	pins := writeItems(b, store, 24)[:200]
	var batch Batch
	for i := range 200 {
		batch.Actions = append(batch.Actions, typical("user:1", i, schemas.Micros(i)*hour/4))
	}
	mustWrite(b, store, batch)
	text, names := "features:\n", []string(nil)
	for i, def := range slices.Repeat([]string{
		"entity: user, aggregate: count", "entity: user, aggregate: distinct", "entity: pin, verbs: save, aggregate: count", "entity: pin, aggregate: rate",
		"entity: pin, aggregate: count, half_life: 6h", "entity: pin, aggregate: distinct", "entity: pair, aggregate: cosine",
		"entity: pair, aggregate: count, group_by: objectAttributes.author", "entity: pair, aggregate: count, group_by: object",
		"entity: pair, aggregate: mean, of: objectAttributes.price, group_by: objectAttributes.author",
	}, 2) {
		names = append(names, fmt.Sprint("f", i))
		text += fmt.Sprintf("- {name: f%d, %s, window: %dh}\n", i, def, 24*(1+i/10))
	}
	s, _ := serviceOf{store: store}.start(b)
	must.OK(b, s.Replace(must.Get(Parse("f", []byte(text)))(b)))
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		must.Get(s.Matrix(b.Context(), "user:1", pins, names))(b)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
