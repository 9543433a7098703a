package decay_test

import (
	"math"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

const (
	day   = 24 * time.Hour
	month = 30 * day
)

var start = schemas.MicrosOf(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))

// Stored sums keep their meaning.
func TestSum_AtFollowsFormula(t *testing.T) {
	const sum = decay.Sum(473.4)
	got := sum.At(start, decay.NewScale(month))
	if want := math.Exp(473.4 - float64(start)/1e6/month.Seconds()*math.Ln2); got != want {
		t.Errorf("value %v, want %v", got, want)
	}
}

// A value that a float64 cannot hold is capped, because JSON has no infinity.
func TestSum_AtIsFinite(t *testing.T) {
	weekly := decay.SumOf(1, start, decay.NewScale(7*day))
	if got := weekly.At(start, decay.NewScale(month)); got != math.MaxFloat64 {
		t.Errorf("a sum on the scale of a week, read on the scale of a month: %v, want MaxFloat64", got)
	}
	expect.Equal(t, decay.None().At(start, decay.NewScale(month)), 0, "value of no weights")
}
