package decay

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Scale is the unit of sums: a weight w at time t adds w · 2^(t/half-life), with t counted from 1970.
type Scale struct{ halfLife time.Duration }

// NewScale returns the scale of sums with a half-life of at least one microsecond.
func NewScale(halfLife time.Duration) Scale { return Scale{halfLife} }

// logUnit returns the logarithm of the addition of a weight of 1 at a time.
func (s Scale) logUnit(at schemas.Micros) float64 {
	return float64(at) / 1e6 / s.halfLife.Seconds() * math.Ln2
}
