package decay_test

import (
	"math"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestFactor(t *testing.T) {
	const hour = schemas.Micros(3_600_000_000)
	for _, c := range []struct {
		name     string
		from, to schemas.Micros
		want     float64
	}{
		{"the same time", hour, hour, 1},
		{"a half-life later", 0, hour, 0.5},
		{"three later", -hour, 2 * hour, 0.125},
		{"a half-life before", hour, 0, 2},
		{"the latest time", math.MinInt64, math.MaxInt64, 0},
		{"the earliest time", math.MaxInt64, math.MinInt64, math.Inf(1)},
	} {
		expect.Equal(t, decay.Factor(c.from, c.to, time.Hour), c.want, "%s", c.name)
	}
}
