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
	expect.Equal(t, got, math.Exp(473.4-float64(start)/1e6/month.Seconds()*math.Ln2), "value")
}

// A value that a float64 cannot hold is capped, because JSON has no infinity.
func TestSum_AtIsFinite(t *testing.T) {
	weekly := decay.SumOf(1, start, decay.NewScale(7*day))
	expect.Equal(t, weekly.At(start, decay.NewScale(month)), math.MaxFloat64, "a sum on the scale of a week, read on the scale of a month")
	expect.Equal(t, decay.None().At(start, decay.NewScale(month)), 0, "value of no weights")
}
