package score_test

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// The half-life is one day. A one-day-old pin ranks above a new pin if its author's edge weight is three times as high,
// because 3 > 2.
func ExampleBase() {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	older := score.Base(1, schemas.MicrosOf(now.Add(-24*time.Hour)), 24*time.Hour)
	newer := score.Base(1, schemas.MicrosOf(now), 24*time.Hour)
	fmt.Printf("%.2f\n", newer-older)
	fmt.Println(score.Weighted(older, 3) > score.Weighted(newer, 1))
	// Output:
	// 0.69
	// true
}
