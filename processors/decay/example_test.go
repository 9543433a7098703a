package decay_test

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

// A sum of weights that halve every day can be read at any later time, because it does not change as time passes.
func ExampleSum() {
	const day = 24 * time.Hour
	start := schemas.Micros(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	later := start + schemas.Micros(day.Microseconds())

	scale := decay.NewScale(day)
	clicks := decay.None().Plus(decay.SumOf(8, start, scale)).Plus(decay.SumOf(1, later, scale))
	fmt.Printf("%.1f\n", clicks.At(later, scale)) // half of 8, plus 1
	fmt.Printf("%.1f\n", clicks.At(later+schemas.Micros(day.Microseconds()), scale))
	// Output:
	// 5.0
	// 2.5
}
