package decay_test

import (
	"encoding/hex"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

const (
	day   = 24 * time.Hour
	month = 30 * day
)

var start = schemas.MicrosOf(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))

func after(d time.Duration) schemas.Micros { return start + schemas.Micros(d.Microseconds()) }

// memoryRows holds rows in memory.
type memoryRows map[string][]byte

func (b memoryRows) Get(row []byte) ([]byte, error) { return b[string(row)], nil }

func (b memoryRows) Put(row, value []byte) { b[string(row)] = value }

// After any changes of the half-life, a sum equals its weights decayed through each half-life in turn.
// Only added weights increase a sum.
func TestUpdateScale_KeepsSumsWhenHalfLifeChanges(t *testing.T) {
	lives := []time.Duration{time.Hour, day, 7 * day, month, 2 * month, 365 * day}
	rapid.Check(t, func(t *rapid.T) {
		rows, now := memoryRows{}, start
		halfLife := rapid.SampledFrom(lives).Draw(t, "half-life")
		sums, want := [2]decay.Sum{decay.None(), decay.None()}, [2]float64{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			passed := time.Duration(rapid.Int64Range(0, int64(2*halfLife)).Draw(t, "passed"))
			now += schemas.Micros(passed.Microseconds())
			for i := range want {
				want[i] *= decay.Factor(now-schemas.Micros(passed.Microseconds()), now, halfLife)
			}
			halfLife = rapid.SampledFrom(lives).Draw(t, "half-life")
			scale, err := decay.UpdateScale(rows, now, halfLife)
			must.OK(t, err)
			of := rapid.IntRange(0, 1).Draw(t, "of")
			weight, age := rapid.Float64Range(0.01, 100).Draw(t, "weight"), time.Duration(rapid.Int64Range(0, int64(3*halfLife)).Draw(t, "age"))
			at := now - schemas.Micros(age.Microseconds())
			sums[of] = sums[of].Plus(decay.SumOf(weight, at, scale))
			want[of] += weight * decay.Factor(at, now, halfLife)
			for i, sum := range sums {
				// 30 changes, each with a rounding error for sums of up to 340,000 (half-life of an hour): 6e-11.
				if got := sum.At(now, scale); math.Abs(got-want[i]) > 1e-8*want[i] {
					t.Fatalf("sum %d: value %v, want %v", i, got, want[i])
				}
			}
			if kept, err := decay.LoadScale(rows, 17*day); err != nil || kept != scale {
				t.Fatalf("LoadScale: %+v, %v, want %+v", kept, err, scale)
			}
		}
	})
}

// Without a stored scale, sums have the configured half-life.
func TestUpdateScale_AssumesConfiguredHalfLife(t *testing.T) {
	const sum = decay.Sum(473.4) // written without a scale, at a half-life of a month
	rows := memoryRows{}
	kept, err := decay.LoadScale(rows, month)
	if err != nil || kept != decay.NewScale(month) || len(rows) != 0 {
		t.Errorf("LoadScale: %+v, %v, %d rows; want a half-life of a month and no rows", kept, err, len(rows))
	}
	first, err := decay.UpdateScale(rows, start, month)
	if err != nil || first != kept {
		t.Errorf("UpdateScale: %+v, %v, want %+v", first, err, kept)
	}
	value := sum.At(start, first)
	if want := math.Exp(473.4 - float64(start)/1e6/month.Seconds()*math.Ln2); value != want {
		t.Errorf("value %v, want %v", value, want)
	}
	next, err := decay.UpdateScale(rows, start, day)
	if got := sum.At(start, next); err != nil || math.Abs(got-value) > 1e-9*value {
		t.Errorf("value %v on the new scale, %v, want %v", got, err, value)
	}
	if got := sum.At(after(day), next); math.Abs(got-value/2) > 1e-9*value {
		t.Errorf("value %v a day later, want half of %v", got, value)
	}
}

// A value that a float64 cannot hold is capped, because JSON has no infinity.
func TestSum_AtIsFinite(t *testing.T) {
	weekly := decay.SumOf(1, start, decay.NewScale(7*day))
	if got := weekly.At(start, decay.NewScale(month)); got != math.MaxFloat64 {
		t.Errorf("a sum on the scale of a week, read on the scale of a month: %v, want MaxFloat64", got)
	}
	if got := decay.None().At(start, decay.NewScale(month)); got != 0 {
		t.Errorf("value of no weights: %v, want 0", got)
	}
}

func TestScale_RowGolden(t *testing.T) {
	rows := memoryRows{}
	must.Get(decay.UpdateScale(rows, start, month))(t)
	// Format, 30 days in nanoseconds, origin.
	if got, want := hex.EncodeToString(rows["scale"]), "01808090f4a0da9a090000000000000000"; len(rows) != 1 || got != want {
		t.Errorf("%d rows, scale %s; want 1 row, %s", len(rows), got, want)
	}
	rows["scale"] = append([]byte{2}, rows["scale"][1:]...)
	if _, err := decay.UpdateScale(rows, start, month); err == nil {
		t.Error("UpdateScale accepted a row of another format")
	}
}
