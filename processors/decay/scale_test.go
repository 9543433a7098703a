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

// beside holds rows in memory.
type beside map[string][]byte

func (b beside) Get(row []byte) ([]byte, error) { return b[string(row)], nil }

func (b beside) Put(row, value []byte) error {
	b[string(row)] = value
	return nil
}

// However often and by however much the half-life changes, a sum equals its weights decayed through each half-life in turn.
// Only added weights increase a sum.
func TestSumsStandWhenTheHalfLifeChanges(t *testing.T) {
	lives := []time.Duration{time.Hour, day, 7 * day, month, 2 * month, 365 * day}
	rapid.Check(t, func(t *rapid.T) {
		rows, now := beside{}, start
		halfLife := rapid.SampledFrom(lives).Draw(t, "half-life")
		sums, want := [2]decay.Sum{decay.None(), decay.None()}, [2]float64{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			passed := time.Duration(rapid.Int64Range(0, int64(2*halfLife)).Draw(t, "passed"))
			now += schemas.Micros(passed.Microseconds())
			for i := range want {
				want[i] *= decay.Left(now-schemas.Micros(passed.Microseconds()), now, halfLife)
			}
			halfLife = rapid.SampledFrom(lives).Draw(t, "half-life")
			scale, err := decay.Keep(rows, now, halfLife)
			must.OK(t, err)
			of := rapid.IntRange(0, 1).Draw(t, "of")
			weight, age := rapid.Float64Range(0.01, 100).Draw(t, "weight"), time.Duration(rapid.Int64Range(0, int64(3*halfLife)).Draw(t, "age"))
			at := now - schemas.Micros(age.Microseconds())
			sums[of] = sums[of].Plus(decay.Once(weight, at, scale))
			want[of] += weight * decay.Left(at, now, halfLife)
			for i, sum := range sums {
				// 30 changes, each with a rounding error for sums of up to 340,000 (half-life of an hour): 6e-11.
				if got := sum.At(now, scale); math.Abs(got-want[i]) > 1e-8*want[i] {
					t.Fatalf("sum %d is worth %v, want %v", i, got, want[i])
				}
			}
			if kept, err := decay.Kept(rows, 17*day); err != nil || kept != scale {
				t.Fatalf("kept is %+v, %v, want %+v", kept, err, scale)
			}
		}
	})
}

// Without a stored scale, sums have the configured half-life.
func TestSumsWithoutAScaleAreOfTheHalfLifeThatIsConfigured(t *testing.T) {
	const sum = decay.Sum(473.4) // of the previous release, at a half-life of a month
	rows := beside{}
	kept, err := decay.Kept(rows, month)
	if err != nil || kept != decay.NewScale(month) || len(rows) != 0 {
		t.Errorf("kept is %+v, %v, and %d rows; want that of a month, and none", kept, err, len(rows))
	}
	first, err := decay.Keep(rows, start, month)
	if err != nil || first != kept {
		t.Errorf("the first is %+v, %v, want %+v", first, err, kept)
	}
	worth := sum.At(start, first)
	if want := math.Exp(473.4 - float64(start)/1e6/month.Seconds()*math.Ln2); worth != want {
		t.Errorf("worth %v, want %v", worth, want)
	}
	next, err := decay.Keep(rows, start, day)
	if got := sum.At(start, next); err != nil || math.Abs(got-worth) > 1e-9*worth {
		t.Errorf("worth %v by another half-life, %v, want %v", got, err, worth)
	}
	if got := sum.At(after(day), next); math.Abs(got-worth/2) > 1e-9*worth {
		t.Errorf("worth %v a day later, want half of %v", got, worth)
	}
}

// A value that a float64 cannot hold is capped, because JSON has no infinity.
func TestWorthIsFinite(t *testing.T) {
	weekly := decay.Once(1, start, decay.NewScale(7*day))
	if got := weekly.At(start, decay.NewScale(month)); got != math.MaxFloat64 {
		t.Errorf("a sum of a week, taken for one of a month, is worth %v", got)
	}
	if got := decay.None().At(start, decay.NewScale(month)); got != 0 {
		t.Errorf("nothing is worth %v", got)
	}
}

func TestTheRowOfAScale(t *testing.T) {
	rows := beside{}
	must.Get(decay.Keep(rows, start, month))(t)
	// Format, 30 days in nanoseconds, origin.
	if got, want := hex.EncodeToString(rows["scale"]), "01808090f4a0da9a090000000000000000"; len(rows) != 1 || got != want {
		t.Errorf("%d rows, the one of the scale %s, want %s", len(rows), got, want)
	}
	rows["scale"] = append([]byte{2}, rows["scale"][1:]...)
	if _, err := decay.Keep(rows, start, month); err == nil {
		t.Error("a row of another format is read")
	}
}
