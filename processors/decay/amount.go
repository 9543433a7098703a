package decay

import (
	"math"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// Amount is a sum of weights that halve with every half-life, as of the newest weight's time. The zero value is the sum of no
// weights. Unlike a Sum, an Amount can be 0 or negative. Its value at its time does not change with the half-life.
type Amount struct {
	Value float64
	Time  schemas.Micros
}

// Plus returns the sum with another weight of time at, which may be older than the weights in it.
func (a Amount) Plus(weight float64, at schemas.Micros, halfLife time.Duration) Amount {
	switch {
	case a == Amount{}:
		return Amount{weight, at}
	case at <= a.Time: // keep the time: as of a much older time, the sum could be infinite
		return Amount{a.Value + weight*Factor(at, a.Time, halfLife), a.Time}
	}
	return Amount{a.Value*Factor(a.Time, at, halfLife) + weight, at}
}

// At returns the sum as of now, which may be before the newest weight's time.
func (a Amount) At(now schemas.Micros, halfLife time.Duration) float64 {
	return a.Value * Factor(a.Time, now, halfLife)
}

// Reaches returns when the sum decays to target if no weight is added. The result may be in the past. The sum and target
// must have the same sign, and neither may be 0.
func (a Amount) Reaches(target float64, halfLife time.Duration) schemas.Micros {
	return a.Time + schemas.Micros(math.Ceil(math.Log2(a.Value/target)*float64(schemas.MicrosIn(halfLife))))
}

// Pack packs the sum as a part of a row; see package packed.
func (a *Amount) Pack(p *packed.Packer) {
	packed.Float(p, &a.Value)
	packed.Int(p, &a.Time)
}
