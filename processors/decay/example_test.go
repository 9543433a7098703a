package decay_test

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

// Weights that halve every day: what is added up once can be read at every later time.
func ExampleSum() {
	const day = 24 * time.Hour
	start := schemas.Micros(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	later := start + schemas.Micros(day.Microseconds())

	clicks := decay.None().Plus(decay.Once(8, start, day)).Plus(decay.Once(1, later, day))
	fmt.Printf("%.1f\n", clicks.At(later, day)) // half of eight, and one
	fmt.Printf("%.1f\n", clicks.At(later+schemas.Micros(day.Microseconds()), day))
	// Output:
	// 5.0
	// 2.5
}
